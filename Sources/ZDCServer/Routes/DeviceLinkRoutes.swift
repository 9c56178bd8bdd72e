internal import Hummingbird
internal import ZDCProtocol

/// Brings a new device and a device of an account together (PROTOCOL 3.4).
enum DeviceLinkRoutes {
  static func offer(_ call: Call) async throws -> Response {
    let id: DeviceLinkID = try call.id("linkID")
    let offer = try await call.bytes()
    guard offer.count == DeviceLinkOffer.byteCount else {
      throw ServerError(.invalidRequest, "the offer must have \(DeviceLinkOffer.byteCount) bytes")
    }
    try await call.core.coordination.offer(offer, as: id, from: call.party, now: call.now)
    return .noContent
  }

  static func offered(_ call: Call) async throws -> Response {
    try call.core.takeWork(of: call.user)
    guard let link = try await call.core.coordination.deviceLink(call.id("linkID"), now: call.now) else {
      throw unknown
    }
    return try .octets(link.offer, for: call)
  }

  static func answer(_ call: Call) async throws -> Response {
    try call.core.takeWork(of: call.user)
    let sealed = try await call.bytes()
    try await call.core.coordination.answer(call.id("linkID"), with: sealed, now: call.now)
    return .noContent
  }

  static func answered(_ call: Call) async throws -> Response { try await wait(call) { $0.answer } }

  static func reveal(_ call: Call) async throws -> Response {
    guard let nonce = DeviceLinkNonce(try await call.bytes()) else {
      throw ServerError(.invalidRequest, "the nonce must have 32 bytes")
    }
    try await call.core.coordination.reveal(nonce, of: call.id("linkID"), now: call.now)
    return .noContent
  }

  static func revealed(_ call: Call) async throws -> Response {
    try call.core.takeWork(of: call.user)
    return try await wait(call) { $0.nonce }
  }

  /// Waits for what the other device sends, to this process or another one.
  private static func wait(_ call: Call, for value: (DeviceLinkRow) -> [UInt8]?) async throws -> Response {
    let (id, coordination): (DeviceLinkID, any ServerCoordination) = (try call.id("linkID"), call.core.coordination)
    let bytes = try await coordination.linkWaiters.wait(for: id, upTo: longestWait) {
      guard let link = try await coordination.deviceLink(id, now: call.now) else { throw unknown }
      return value(link)
    }
    return try bytes.map { try .octets($0, for: call) } ?? .noContent
  }

  private static let longestWait: Duration = .seconds(20)
  private static let unknown = ServerError(.notFound, "no such link, or it has expired")
}
