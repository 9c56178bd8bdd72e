internal import ZDCProtocol
internal import ZDCTransfers

/// Lets a few of a user's uploads seal and send at a time, because each holds parts of about 8 MiB in memory.
///
/// Content of one part has slots of its own, so that photos do not wait for films.
package struct UploadSlots: Sendable {
  private let onePart = TransferSlots(limit: 5)
  private let severalParts = TransferSlots(limit: 2)

  /// Runs `body` when it is its turn.
  ///
  /// - Throws: `CancellationError`, immediately, if the task is cancelled while it waits; any error of `body`.
  func run<Value>(cipherLength: UInt64, _ body: () async throws -> Value) async throws -> Value {
    let slots = ContentGeometry.partCount(cipherLength: cipherLength) == 1 ? onePart : severalParts
    return try await slots.run(TransferContext(usesLongRetries: false), body)
  }
}
