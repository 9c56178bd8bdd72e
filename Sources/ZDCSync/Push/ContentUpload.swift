internal import ZDCClientAPI
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCTransfers

/// Seals large content as a stream and sends it in parts, sealing one part while another is in flight.
///
/// An interrupted attempt is resumed, even by a later process, if the app provides the same source. The content is
/// sealed again with the same key and salt, and parts that the server has are not sent again. Any difference from what
/// may have been sent before ends the attempt. The next attempt uses a fresh salt, key and blob ID (SECURITY B9).
struct ContentUpload {
  /// The maximum number of parts in flight. Bounds the loss when the process is killed, and the memory used beside the
  /// part being sealed. sealed.
  private static let partsUnderWay = 1

  package let api: ServerAPI
  package let journal: UploadJournal
  package let progress: @Sendable (_ sent: UInt64, _ total: UInt64) -> Void

  /// A part differs from the one that may have left the device under the same key.
  private struct PartDiffers: Error {}

  /// - Throws: `CryptoFailure.sourceChanged` if the source's length or modification time changed while it was read;
  ///   `ZDCSecurityError` if the server claims a different root; `ServerError`, `TransportError`, `CancellationError`.
  package func send(_ source: ContentSource, metadata: [UInt8], thumbnail: [UInt8]) async throws -> SuppliedContent {
    let fresh = try ContentSealer(metadata: metadata, thumbnail: thumbnail, dataSize: source.size)
    let fingerprint = source.fingerprint(metadata: metadata, thumbnail: thumbnail)
    if let known = try await known(fingerprint) {
      do {
        let sealer = try ContentSealer(
          again: fresh.layout, key: known.key, salt: known.salt, blobID: known.blobID, metadata: metadata,
          thumbnail: thumbnail)
        return try await send(source, sealer, known)
      } catch {
        guard Self.isOver(error) else { throw error }
        try await giveUp([known.blobID])
        if case CryptoFailure.sourceChanged = error { throw error }
      }
    }
    return try await begin(source, fresh, fingerprint)
  }

  private func begin(
    _ source: ContentSource, _ sealer: ContentSealer, _ fingerprint: [UInt8]
  ) async throws -> SuppliedContent {
    let attempt = UploadAttempt(
      blobID: sealer.blobID, key: sealer.secrets.key, salt: sealer.salt, fingerprint: fingerprint)
    do {
      return try await send(source, sealer, attempt)
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

  // MARK: One attempt

  private func send(
    _ source: ContentSource, _ sealer: ContentSealer, _ attempt: UploadAttempt
  ) async throws -> SuppliedContent {
    let total = sealer.cipherLength
    let status = try await api.openBlob(
      BlobTicketRequest(
        blobID: sealer.blobID, treeID: journal.tree, nodeID: journal.node, cipherLength: total))
    let there = Dictionary(status.parts.map { ($0.index, $0.hash.bytes) }, uniquingKeysWith: { $1 })
    var parts = try PartSealer(source, sealer)
    try await withThrowingTaskGroup(of: PartSealer.Part.self) { group in
      var sent: UInt64 = 0
      var underWay = 0
      while let part = try parts.next() {
        try Task.checkCancellation()
        if underWay == Self.partsUnderWay, let done = try await group.next() {
          underWay -= 1
          sent += UInt64(done.bytes.count)
          progress(sent, total)
          parts.reuse(done)
        }
        guard try await mustSend(part, attempt, there, total: total) else {
          sent += UInt64(part.bytes.count)
          progress(sent, total)
          continue
        }
        group.addTask { [api] in
          try await TransferRetry.run {
            try await api.putPart(attempt.blobID, index: part.index, bytes: part.bytes, hash: part.hash)
          }
          return part
        }
        underWay += 1
      }
      for try await done in group {
        sent += UInt64(done.bytes.count)
        progress(sent, total)
      }
    }
    return try await complete(parts.fields, sealer)
  }

  /// Compares the part with what was sent before, and records the part before it is sent.
  private func mustSend(
    _ part: PartSealer.Part, _ attempt: UploadAttempt, _ there: [Int: [UInt8]], total: UInt64
  ) async throws -> Bool {
    if let before = attempt.parts[part.index] {
      guard before == part.hash else { throw PartDiffers() }
    } else if ContentGeometry.partCount(cipherLength: total) > 1 {
      // Resuming gains nothing for content of one part, so it is not recorded and starts over.
      guard try await journal.note(part, of: attempt) else { throw PartDiffers() }
    }
    guard let known = there[part.index] else { return true }
    guard known == part.hash else { throw PartDiffers() }
    return false
  }

  private func complete(_ fields: NodeRecord.Content?, _ sealer: ContentSealer) async throws -> SuppliedContent {
    let status = try await TransferRetry.run { try await api.completeBlob(sealer.blobID) }
    guard let fields, status.contentRoot == fields.contentRoot else {
      throw ZDCSecurityError(.contentHashMismatch, node: journal.node)
    }
    return .uploaded(fields, sealer.secrets)
  }
}
