internal import Logging
internal import ZDCProtocol

// Disk space, and blob files without a row.
extension ServerCore {
  /// Removes files whose rows no longer exist. The next collection retries files that cannot be removed now.
  func removeFiles(of gone: [BlobID]) async {
    for blob in gone {
      do { try await removeFile(of: blob) } catch { logger.warning("upkeep failed", metadata: ["step": "remove"]) }
    }
  }

  /// Checks for the row before the claim too: most files that a scan finds are in use, and claiming an upload makes the
  /// server refuse its next part.
  private func removeFile(of blob: BlobID) async throws {
    guard try await isUnknown(blob), await coordination.claimRemoval(of: blob) else { return }
    do {
      if try await isUnknown(blob) { try await blobs.remove(blob) }
    } catch {
      await coordination.releaseRemoval(of: blob)
      throw error
    }
    await coordination.releaseRemoval(of: blob)
  }

  private func isUnknown(_ blob: BlobID) async throws -> Bool {
    try await metadata.read { try $0.file(blob) } == nil
  }

  /// Returns whether the disk has room for a small commit and a small part.
  ///
  /// Only a server that has hit a full disk writes to find out; otherwise the call does nothing.
  func hasRoom() async throws -> Bool {
    guard isFull else { return true }
    do {
      try await blobs.probeFreeSpace()
      try await metadata.write([.upkeep]) { try $0.probeFreeSpace() }
    } catch is StorageFull { return false }
    try await metadata.write([.upkeep]) { try $0.releaseProbe() }
    setFull(false)
    return true
  }
}
