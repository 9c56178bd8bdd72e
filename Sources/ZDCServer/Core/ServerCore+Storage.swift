internal import Logging
internal import Synchronization
internal import ZDCProtocol

// Disk space, and blob files without a row.
extension ServerCore {
  /// Removes files whose rows no longer exist. The next collection retries files that cannot be removed now.
  ///
  /// - Parameter areUploads: whether no commit has attached them. No backup has such files, so they are not noted.
  func removeFiles(of gone: [BlobID], areUploads: Bool = false) async {
    for start in stride(from: 0, to: gone.count, by: Self.removalBatch) {
      let batch = Array(gone[start..<min(start + Self.removalBatch, gone.count)])
      do { try await removeBatch(batch, isNoted: !areUploads) } catch {
        logger.warning("upkeep failed", metadata: ["step": "remove"])
      }
    }
  }

  private static let removalBatch: Int = 100

  /// Checks for the rows before the claims too: most files that a scan finds are in use, and claiming an upload makes
  /// the server refuse its next part.
  private func removeBatch(_ blobs: [BlobID], isNoted: Bool) async throws {
    var claimed: [BlobID] = []
    let outcome: Result<Void, any Error>
    do {
      for blob in try await unknown(blobs) where await coordination.claimRemoval(of: blob) { claimed.append(blob) }
      let gone = try await unknown(claimed)
      if !gone.isEmpty {
        if isNoted { try noteRemoval(of: gone) }
        try await self.blobs.remove(gone)
        forgetRemoval(of: gone)
      }
      outcome = .success(())
    } catch { outcome = .failure(error) }
    for blob in claimed { await coordination.releaseRemoval(of: blob) }
    try outcome.get()
  }

  /// A file that could not be removed is noted once, however often the server tries again.
  private func noteRemoval(of blobs: [BlobID]) throws {
    guard let deletions else { return }
    let new = notedRemovals.withLock { noted in blobs.filter { !noted.contains($0) } }
    try deletions.note(new.map { .content($0) })
    notedRemovals.withLock { $0.formUnion(new) }
  }

  private func forgetRemoval(of blobs: [BlobID]) { notedRemovals.withLock { $0.subtract(blobs) } }

  /// Returns the blobs without a row.
  private func unknown(_ blobs: [BlobID]) async throws -> [BlobID] {
    guard !blobs.isEmpty else { return [] }
    return try await metadata.read { reader in try blobs.filter { try reader.file($0) == nil } }
  }

  /// Returns whether the disk has room for a small commit and a small part.
  ///
  /// Only a server that has hit a full disk writes to find out, every few seconds at most; otherwise the call does
  /// nothing.
  func hasRoom() async throws -> Bool {
    guard isFull else { return true }
    guard takeProbe() else { return false }
    do {
      try await blobs.probeFreeSpace()
      try await metadata.write([.upkeep]) { try $0.probeFreeSpace() }
    } catch is StorageFull { return false } catch is BlobStoreFailure { return false }
    try await metadata.write([.upkeep]) { try $0.releaseProbe() }
    setFull(false)
    return true
  }
}
