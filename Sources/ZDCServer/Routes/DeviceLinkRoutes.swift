internal import Hummingbird
internal import ZDCProtocol

/// Brings a new device and a device of an account together (PROTOCOL 3.4).
enum DeviceLinkRoutes {
  static func offer(_ call: Call) async throws -> Response {
    let id: DeviceLinkID = try call.id("linkID")
    let key = try await call.bytes()
    guard key.count == IdentityLink.encPubBytes else {
      throw ServerError(.invalidRequest, "the key must have \(IdentityLink.encPubBytes) bytes")
    }
    try await call.core.coordination.offer(key, as: id, from: call.party, now: call.now)
    return .noContent
  }

  static func offered(_ call: Call) async throws -> Response {
    try call.core.takeWork(of: call.user)
    guard let link = try await call.core.coordination.deviceLink(call.id("linkID"), now: call.now) else {
      throw unknown
    }
    return try .octets(link.key, for: call)
  }

  static func answer(_ call: Call) async throws -> Response {
    try call.core.takeWork(of: call.user)
    let sealed = try await call.bytes()
    try await call.core.coordination.answer(call.id("linkID"), with: sealed, now: call.now)
    return .noContent
  }

  /// Waits up to 20 seconds for the answer. It polls, because another process may receive the answer.
  static func wait(_ call: Call) async throws -> Response {
    let id: DeviceLinkID = try call.id("linkID")
    let end = call.core.elapsed + waitMs
    while !call.core.isStopping {
      guard let link = try await call.core.coordination.deviceLink(id, now: call.now) else { throw unknown }
      if let answer = link.answer { return try .octets(answer, for: call) }
      guard call.core.elapsed < end else { break }
      try await Task.sleep(for: .milliseconds(200))
    }
    return .noContent
  }

  private static let waitMs: UInt64 = 20_000
  private static let unknown = ServerError(.notFound, "no such link, or it has expired")
}
