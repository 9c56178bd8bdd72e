/// The engines' source of time and randomness. Tests replace it.
package struct EngineClock: Sendable {
  package var now: @Sendable () -> ContinuousClock.Instant = { .now }
  package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  /// In 0..<1, for jitter.
  package var random: @Sendable () -> Double = { .random(in: 0..<1) }

  package init() {}
}
