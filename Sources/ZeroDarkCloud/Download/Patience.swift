internal import ZDCProtocol

/// How often a transfer tries again: without end while each try brings something, a few times while none does.
struct Patience: Sendable {
  private static let triesWithoutProgress = 3
  private var fruitless = 0

  /// Returns if it is worth another try, after a pause that grows.
  ///
  /// - Throws: `error` itself if it is not.
  mutating func tryAgain(after error: any Error, hasProgressed: Bool) async throws {
    guard Self.isTransient(error) else { throw error }
    fruitless = hasProgressed ? 0 : fruitless + 1
    guard fruitless < Self.triesWithoutProgress else { throw error }
    guard fruitless > 0 else { return }
    let wanted = (error as? ServerError)?.retryAfterMs ?? 0
    try await Task.sleep(for: .milliseconds(max(Int(wanted), Int.random(in: 50..<100) << fruitless)))
  }

  private static func isTransient(_ error: any Error) -> Bool {
    switch error {
    case let error as TransportError: error.isTemporary
    case let error as ServerError: error.retryable && (error.retryAfterMs ?? 0) <= 1_000
    default: false
    }
  }

  /// Does it until it succeeds or patience ends.
  static func run<Value>(_ body: () async throws -> Value) async throws -> Value {
    var patience = Patience()
    while true {
      do {
        return try await body()
      } catch { try await patience.tryAgain(after: error, hasProgressed: false) }
    }
  }
}
