public import Foundation
package import ZDCClientStore
internal import ZDCCrypto

extension ZDCDiskManager {
  /// Reads the database for a call that does not throw; returns nil on failure.
  package func lookUp<T>(_ body: (ZDCReadTransaction) throws -> T) -> T? {
    if let transaction = CurrentTransaction.ofDatabase(database.context) {
      return transaction.poisoning { try body(transaction) }
    }
    do { return try database.read(body) } catch {
      report(error)
      return nil
    }
  }

  package func has(_ owner: DiskOwner) -> Bool {
    let now = nowMs
    return lookUp { try $0.diskFiles.has(owner, nowMs: now) } ?? false
  }

  /// Returns the entry, with a hold on its file; nil if there is none, or it has expired.
  package func export(_ owner: DiskOwner) -> ZDCDiskExport? {
    // Tries twice: the file may be replaced between the look-up and the hold.
    for _ in 0..<2 {
      guard let row = lookUp({ try $0.diskFiles.row(owner) }) ?? nil, !row.isExpired(nowMs: nowMs) else { return nil }
      do {
        guard let export = try export(row) else { continue }
        if disk.touch(row.id, nowMs: nowMs) { enqueue { try $0.flushUses() } }
        return export
      } catch {
        report(error)
        return nil
      }
    }
    forgetMissing(owner)
    return nil
  }

  /// - Returns: nil if the file does not exist.
  private func export(_ row: DiskFileRow) throws -> ZDCDiskExport? {
    var cryptoFile: ZDCCryptoFile?
    if let file = row.file {
      let token = holds.token(file.name)
      guard folder.exists(file.name) else { return nil }
      cryptoFile = try self.cryptoFile(file, token)
    }
    return ZDCDiskExport(
      cryptoFile: cryptoFile, isStoredPersistently: row.isPersistent, eTag: row.eTag,
      expiration: TimeInterval(row.lifetimeMs ?? 0) / 1_000, contentETag: row.contentETag)
  }

  package func cryptoFile(_ file: DiskFileRow.File, _ token: ZDCFileRetainToken) throws -> ZDCCryptoFile {
    ZDCCryptoFile(
      fileURL: folder.url(file.name), reference: file.reference,
      leaves: try ContentLeaves(bytes: file.leaves, for: file.reference), fileFormat: file.format, retainToken: token)
  }

  /// Removes the row of a file that something else deleted, such as a system that runs out of space.
  private func forgetMissing(_ owner: DiskOwner) {
    enqueue { manager in
      try manager.database.write { transaction in
        guard let file = try transaction.diskFiles.row(owner)?.file, !manager.folder.exists(file.name) else { return }
        try DiskWriter(transaction).delete(owner)
      }
    }
  }

  /// Removes the row of a file that has changed, so that it is not handed out again.
  package func forget(_ owner: DiskOwner, _ file: ZDCCryptoFile) {
    enqueue { manager in
      try manager.database.write { transaction in
        guard try transaction.diskFiles.row(owner)?.file?.name == file.retainToken?.name else { return }
        try DiskWriter(transaction).delete(owner)
      }
    }
  }

  // MARK: Changes

  package func delete(_ owners: [DiskOwner]) throws {
    try database.joinedWrite { transaction in
      let writer = DiskWriter(transaction)
      for owner in owners { try writer.delete(owner) }
    }
  }

  func makePersistent(_ isPersistent: Bool, _ owner: DiskOwner) throws -> Bool {
    try database.joinedWrite { try DiskWriter($0).setPersistent(isPersistent, owner) }
  }

  /// Deletes the file at that URL unless it belongs to the disk manager.
  ///
  /// For files that a download left to the caller. A URL without a file is not an error.
  ///
  /// ```swift
  /// let (_, file) = try await session.downloadManager.downloadNodeData(node)
  /// importDocument(file, of: node)
  /// session.diskManager.deleteFileIfUnmanaged(file.fileURL)
  /// ```
  public func deleteFileIfUnmanaged(_ url: URL) {
    let file = url.standardizedFileURL.resolvingSymlinksInPath()
    let own = folder.url.standardizedFileURL.resolvingSymlinksInPath()
    guard file.deletingLastPathComponent().path != own.path else { return }
    DownloadFolder.remove(file)
  }
}
