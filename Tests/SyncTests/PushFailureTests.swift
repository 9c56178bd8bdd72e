import Testing
import ZDCProtocol

@testable import ZDCSync

/// The meaning of a refused commit for the queue, for each code that a server may send.
struct PushFailureTests {
  private static let unknown: [ServerError.Code.Name] = [.internalError]
  private static let slower: [ServerError.Code.Name] = [.shuttingDown, .storageFull]
  private static let later: [ServerError.Code.Name] = [
    .tooManyRequests, .zoneBusy, .headMismatch, .conflict, .handleTaken, .zoneExists, .gone,
  ]
  private static let content: [ServerError.Code.Name] = [.blobGone, .blobIncomplete]
  private static let quota: [ServerError.Code.Name] = [.quotaExceeded]
  private static let access: [ServerError.Code.Name] = [
    .unauthorized, .forbidden, .accountClosed, .accountSuspended, .unsupportedProtocol, .registrationClosed,
    .inviteRequired,
  ]
  private static let refused: [ServerError.Code.Name] = [
    .invalidRequest, .notFound, .refused, .limitExceeded, .methodNotAllowed, .rangeNotSatisfiable,
  ]

  private static func failure(_ name: ServerError.Code.Name, afterMs pause: UInt64?) -> PushFailure {
    PushFailure(ServerError(.init(name), "refused", retryAfterMs: pause))
  }

  /// - The server asks for no pause, for a short one, or for a long one
  /// => each code has its meaning, and the pause is at least the code's own
  @Test(arguments: [nil, 7, 90_000] as [UInt64?]) func eachCode(pause: UInt64?) {
    let asked = pause ?? 0
    for name in Self.unknown { #expect(Self.failure(name, afterMs: pause) == .unknownOutcome) }
    for name in Self.slower { #expect(Self.failure(name, afterMs: pause) == .retryLater(afterMs: max(asked, 1_000))) }
    for name in Self.later { #expect(Self.failure(name, afterMs: pause) == .retryLater(afterMs: asked)) }
    for name in Self.content { #expect(Self.failure(name, afterMs: pause) == .contentLost) }
    for name in Self.quota { #expect(Self.failure(name, afterMs: pause) == .overQuota(afterMs: max(asked, 60_000))) }
    for name in Self.access { #expect(Self.failure(name, afterMs: pause) == .noAccess(.init(name))) }
    for name in Self.refused { #expect(Self.failure(name, afterMs: pause) == .refused(.init(name))) }
  }

  @Test func noCodeIsMissing() {
    let all = Self.unknown + Self.slower + Self.later + Self.content + Self.quota + Self.access + Self.refused
    #expect(all.count == Set(all).count)
    #expect(Set(all) == Set(ServerError.Code.Name.allCases))
  }
}
