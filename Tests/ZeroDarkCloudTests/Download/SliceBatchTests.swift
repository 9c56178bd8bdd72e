import Testing
import ZDCProtocol

@testable import ZDCClientAPI
@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// The bytes handled together as content arrives: at most the expected ones and one slice, without a long wait.
@Suite struct SliceBatchTests {
  /// Longer than a busy machine needs between two available slices.
  private static let long = Duration.seconds(600)

  /// Returns a body that yields the slices in order and then ends, or throws `error`.
  private static func body(
    _ slices: [[UInt8]], pause: Duration = .zero, error: (any Error)? = nil
  ) -> TransportBody {
    let rest = Locked(slices[...])
    return TransportBody {
      if pause > .zero { try await Task.sleep(for: pause) }
      guard let slice = rest.withLock({ $0.popFirst() }) else {
        if let error { throw error }
        return nil
      }
      return slice
    }
  }

  @Test func availableSlices_areReturnedTogether_withTheEnd() async throws {
    let batch = await SliceBatch.next(of: Self.body([[1], [2, 3]]), expected: 3, patience: Self.long)
    #expect(batch.slices == [[1], [2, 3]])
    #expect(batch.count == 3)
    try #require(batch.end).get()
  }

  @Test func slicesBeforeADisconnect_areKept() async throws {
    let body = Self.body([[1], [2]], error: TransportError(.cut))
    let batch = await SliceBatch.next(of: body, expected: 100, patience: Self.long)
    #expect(batch.slices == [[1], [2]])
    #expect(throws: TransportError(.cut)) { try batch.end?.get() }
  }

  @Test func theSliceThatIsTooMuch_isTheLast() async {
    let body = Self.body(Array(repeating: [0, 0], count: 50))
    let batch = await SliceBatch.next(of: body, expected: 5, patience: Self.long)
    #expect(batch.count == 6)
    #expect(batch.end == nil)
  }

  @Test func aLargeBody_comesInBoundedBatches() async {
    let slice = [UInt8](repeating: 7, count: 100_000)
    let body = Self.body(Array(repeating: slice, count: 50))
    let batch = await SliceBatch.next(of: body, expected: 5_000_000, patience: Self.long)
    #expect(batch.slices.count == 6)
  }

  @Test func slowSlices_areNotWaitedFor() async {
    let body = Self.body([[1], [2]], pause: .milliseconds(60))
    let batch = await SliceBatch.next(of: body, expected: 100)
    #expect(batch.slices == [[1]])
  }
}
