package import ZDCClientAPI

/// Slices of a body that are handled together while the next ones arrive.
///
/// With single slices, two threads would wake each other for each one, which takes as long as handling it.
package struct SliceBatch: Sendable {
  private static let bytes = 512 << 10

  package private(set) var slices: [[UInt8]] = []
  package private(set) var count = 0
  /// How the body ended after these slices; nil if it continues.
  package private(set) var end: Result<Void, any Error>?

  /// - Parameters:
  ///   - expected: number of bytes still to come. The first slice that exceeds it completes the batch.
  ///   - patience: time after which no further slice is awaited, so that the progress stays current.
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
