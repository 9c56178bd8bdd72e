package import ZDCClientAPI

/// Slices of a body that are handled at one go, while the next ones come.
///
/// One by one, two threads wake each other for each of them, which takes as long as handling it does.
package struct SliceBatch: Sendable {
  private static let bytes = 512 << 10

  package private(set) var slices: [[UInt8]] = []
  package private(set) var count = 0
  /// How the body ended behind them.
  package private(set) var end: Result<Void, any Error>?

  /// - Parameters:
  ///   - expected: how much is to come. With the first slice that is more, the batch is complete.
  ///   - patience: after this no further slice is waited for: somebody looks at the progress.
  package static func next(
    of body: TransportBody, expected: UInt64, patience: Duration = .milliseconds(50)
  ) async -> SliceBatch {
    let start = ContinuousClock.now
    let wanted = Int(min(UInt64(bytes), expected + 1))
    var batch = SliceBatch()
    do {
      repeat {
        guard let slice = try await body.next() else {
          batch.end = .success(())
          break
        }
        batch.count += slice.count
        batch.slices.append(slice)
      } while batch.count < wanted && start.duration(to: .now) < patience
    } catch { batch.end = .failure(error) }
    return batch
  }
}
