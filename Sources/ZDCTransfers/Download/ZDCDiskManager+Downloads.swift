internal import Foundation
internal import ZDCClientStore
internal import ZDCTreesystem

// Storage of downloads. The download manager calls it with what it has verified.

extension ZDCDiskManager: DownloadKeeper {
  /// Keeps a downloaded file. It never replaces a file that waits to be uploaded.
  ///
  /// - Returns: the kept file, in which case the given one is removed; or else the given one.
  /// - Throws: as an import, if the file is to be stored persistently. A failing cache never fails a download.
  package func keep(
    _ file: ZDCCryptoFile, of content: DownloadedContent, isPersistent: Bool
  ) async throws -> ZDCCryptoFile {
    let kept = try await keep(.cryptoFile(file), .data(content.nodeID), content.info.eTag, isPersistent)
    guard let kept else { return file }
    DownloadFolder.remove(file.fileURL)
    return kept
  }

  func keepThumbnail(_ thumbnail: Data?, of content: DownloadedContent, isPersistent: Bool) async throws {
    let source = thumbnail.map { ZDCDiskImport.Source.cleartext(.memory([UInt8]($0))) } ?? .nothing
    _ = try await keep(source, .thumbnail(content.nodeID), content.info.eTag, isPersistent)
  }

  /// - Returns: nil if the file is not kept.
  private func keep(
    _ source: ZDCDiskImport.Source, _ owner: DiskOwner, _ eTag: String, _ isPersistent: Bool
  ) async throws -> ZDCCryptoFile? {
    do {
      // Another request for the same content was first.
      if let known = try await known(owner, eTag, isPersistent) { return known.cryptoFile }
      return try await store(try make(source), owner, eTag, isPersistent)
    } catch  where !isPersistent && !(error is CancellationError) {
      report(error)
      return nil
    }
  }

  private func known(_ owner: DiskOwner, _ eTag: String, _ isPersistent: Bool) async throws -> ZDCDiskExport? {
    guard let known = export(owner), known.eTag == eTag else { return nil }
    // A file that the app stored under that eTag lacks the other sections.
    if owner.kind == .nodeData, known.cryptoFile?.fileFormat != .cloudFile { return nil }
    if isPersistent, !known.isStoredPersistently {
      // It may have been evicted in the meantime.
      guard try await database.write({ try DiskWriter($0).setPersistent(true, owner) }) else { return nil }
    }
    return known
  }

  private func store(
    _ made: MadeFile?, _ owner: DiskOwner, _ eTag: String, _ isPersistent: Bool
  ) async throws -> ZDCCryptoFile? {
    do {
      let isKept = try await database.write { transaction in
        let before = try transaction.diskFiles.row(owner)
        if let before, try Self.isWanted(before, transaction) {
          if let made { try transaction.diskFiles.addGarbage(made.file.name) }
          return false
        }
        var row = DiskFileRow(
          owner: owner, file: made?.file, isPersistent: isPersistent || before?.isPersistent ?? false)
        row.eTag = eTag
        row.contentETag = eTag
        row.lifetimeMs = self.disk.limits.lifetime[owner.kind]
        return try self.put(row, node: try self.nodeRow(owner, transaction)?.id, made, transaction)
      }
      return isKept ? try made.map { try cryptoFile($0.file, $0.token) } : nil
    } catch {
      if let made { discard(made) }
      throw error
    }
  }

  /// Whether the file is the app's newest version and waits for its upload.
  private static func isWanted(_ row: DiskFileRow, _ transaction: ZDCReadTransaction) throws -> Bool {
    if row.afterUpload != .nothing { return true }
    guard let node = try transaction.nodes.node(uuid: row.owner.id) else { return false }
    return try transaction.operations.operations(node: node.id).contains { $0.kind == .putData }
  }
}
