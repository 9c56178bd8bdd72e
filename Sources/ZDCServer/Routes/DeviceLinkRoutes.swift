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

  /// Waits up to 20 seconds for what the other device sends. It polls, because another process may receive that.
  private static func wait(
    _ call: Call, for value: @Sendable (DeviceLinkRow) -> [UInt8]?
  ) async throws -> Response {
    let id: DeviceLinkID = try call.id("linkID")
    let end = call.core.elapsed + waitMs
    while !call.core.isStopping {
      guard let link = try await call.core.coordination.deviceLink(id, now: call.now) else { throw unknown }
      if let bytes = value(link) { return try .octets(bytes, for: call) }
      guard call.core.elapsed < end else { break }
      try await Task.sleep(for: .milliseconds(200))
    }
    return .noContent
  }

  private static let waitMs: UInt64 = 20_000
  private static let unknown = ServerError(.notFound, "no such link, or it has expired")
}
