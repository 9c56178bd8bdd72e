internal import ZDCClientAPI
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers

/// Seals large content as a stream and sends it in parts, sealing one part while others are in flight.
///
/// An interrupted attempt is resumed, even by a later process, if the app provides the same source. The content is
/// sealed again with the same key and salt, and parts that the server has are not sent again. Any difference from what
/// may have been sent before ends the attempt. The next attempt uses a fresh salt, key and blob ID (SECURITY B9).
///
/// While the app is away, the remaining parts are sealed into files, which the system sends.
struct ContentUpload: Sendable {
  package let api: ServerAPI
  package let journal: UploadJournal
  package let handOver: TransferHandOver
  package let slots: UploadSlots
  package let progress: @Sendable (_ sent: UInt64, _ total: UInt64) -> Void

  /// The app's content, and the sizes that follow from it.
  struct Source: Sendable {
    let data: ContentSource
    let metadata: [UInt8]
    let thumbnail: [UInt8]
    let layout: ContentLayout

    /// Returns a sealer that makes the same bytes each time.
    func sealer(_ attempt: UploadAttempt) throws -> ContentSealer {
      try ContentSealer(
        again: layout, key: attempt.key, salt: attempt.salt, blobID: attempt.blobID, metadata: metadata,
        thumbnail: thumbnail)
    }
  }

  /// A part differs from the one that may have left the device under the same key.
  struct PartDiffers: Error {}

  /// - Throws: `CryptoFailure.sourceChanged` if the source's length or modification time changed while it was read;
  ///   `ZDCSecurityError` if the server claims a different root; `ZDCServerError`, `ZDCTransportError`, `CancellationError`.
  package func send(_ data: ContentSource, metadata: [UInt8], thumbnail: [UInt8]) async throws -> SuppliedContent {
    let fresh = try ContentSealer(metadata: metadata, thumbnail: thumbnail, dataSize: data.size)
    let source = Source(data: data, metadata: metadata, thumbnail: thumbnail, layout: fresh.layout)
    let fingerprint = data.fingerprint(metadata: metadata, thumbnail: thumbnail)
    if let known = try await known(fingerprint) {
      do {
        return try await send(source, known)
      } catch {
        guard Self.isOver(error) else { throw error }
        try await giveUp([known.blobID])
        if case CryptoFailure.sourceChanged = error { throw error }
      }
    }
    let attempt = UploadAttempt(
      blobID: fresh.blobID, key: fresh.secrets.key, salt: fresh.salt, fingerprint: fingerprint)
    return try await begin(source, attempt)
  }

  private func begin(_ source: Source, _ attempt: UploadAttempt) async throws -> SuppliedContent {
    do {
      return try await send(source, attempt)
    } catch {
      if Self.isOver(error) { try await giveUp([attempt.blobID]) }
      // This is a first attempt, so the server names parts that it cannot have.
      throw error is PartDiffers ? ZDCSecurityError(.contentHashMismatch, node: journal.node) : error
    }
  }

  /// Returns the attempt to resume, and gives up all other attempts.
  private func known(_ fingerprint: [UInt8]) async throws -> UploadAttempt? {
    let (attempts, forgotten) = try await journal.load()
    let known = attempts.first { $0.fingerprint == fingerprint }
    let useless = attempts.map(\.blobID).filter { $0 != known?.blobID } + forgotten.filter { $0 != known?.blobID }
    if !useless.isEmpty { try await giveUp(useless) }
    return known
  }

  private func giveUp(_ blobs: [BlobID]) async throws {
    // No part may arrive after the server has removed the upload.
    for blob in blobs { await handOver.withdraw(.blob(blob)) }
    try await journal.forget(blobs)
    for blob in blobs {
      // The server garbage-collects any blob that it keeps after seven days.
      do { try await api.abortBlob(blob) } catch is CancellationError { throw CancellationError() } catch {}
    }
  }

  /// Returns whether the attempt has failed permanently.
  private static func isOver(_ error: any Error) -> Bool {
    switch error {
    case is PartDiffers, is ZDCSecurityError, is CryptoFailure: true
    case let error as ServerError:
      !error.retryable && [.conflict, .notFound, .refused, .invalidRequest, .limitExceeded].contains(error.code)
    default: false
    }
  }
}
