internal import Logging
internal import ZDCProtocol

// Room on the disk, and the files of contents that are no longer known.
extension ServerCore {
  /// Removes files whose rows are gone. What cannot be removed now is found by the next collection.
  func removeFiles(of gone: [BlobID]) async {
    for blob in gone {
      do { try await removeFile(of: blob) } catch { logger.warning("upkeep failed", metadata: ["step": "remove"]) }
    }
  }

  /// Asks before the claim as well: most files that a search finds are in use, and a claimed upload is refused its next part.
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

  /// True if a small commit and a small part would find room.
  ///
  /// Only a server that met a full disk writes to find out; otherwise nothing is done.
  func hasRoom() async throws -> Bool {
    guard isFull else { return true }
    do {
      try await blobs.takeRoom()
      try await metadata.write([.upkeep]) { try $0.takeRoom() }
    } catch is StorageFull { return false }
    try await metadata.write([.upkeep]) { try $0.clearRoom() }
    setFull(false)
    return true
  }
}
