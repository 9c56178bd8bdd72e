import Foundation
import ZeroDarkCloud

extension Account {
  /// The photos of tasks, on this device and in the cloud.
  public var photos: Photos { Photos(account: self) }
}

/// Reads photos and thumbnails, and downloads those that this device does not have.
public struct Photos: Sendable {
  let account: Account

  private var session: ZDCSession { account.session }

  /// Maximum size of a photo and of a thumbnail, in bytes. Larger ones of other devices are not decrypted.
  public static let maxBytes = 25_000_000

  /// Returns the photo of a task: from this device, or else from the cloud. Nil if the task has none.
  ///
  /// - Throws: `sectionTooLarge` above ``maxBytes``.
  public func data(of taskID: String) async throws -> Data? {
    try await file(of: taskID).map { try ZDCFileConversion.decryptCryptoFile(intoMemory: $0) }
  }

  /// Downloads the photo of a task unless this device has it already.
  ///
  /// - Returns: Whether the task has a photo.
  /// - Throws: `sectionTooLarge` above ``maxBytes``.
  public func download(of taskID: String) async throws -> Bool { try await file(of: taskID) != nil }

  private func file(of taskID: String) async throws -> ZDCCryptoFile? {
    guard let node = try await self.node(of: taskID) else { return nil }
    if let file = session.diskManager.nodeData(node)?.cryptoFile { return try checkSize(file) }
    guard node.cloudDataInfo?.dataSize ?? 0 <= Self.maxBytes else { throw ZDCError(.sectionTooLarge) }
    let options = ZDCDownloadOptions()
    options.cacheToDiskManager = true
    return try checkSize(try await session.downloadManager.downloadNodeData(node, options: options).cryptoFile)
  }

  private func checkSize(_ file: ZDCCryptoFile) throws -> ZDCCryptoFile {
    guard file.cleartextFileSize <= Self.maxBytes else { throw ZDCError(.sectionTooLarge) }
    return file
  }

  /// Returns the downloaded fraction of a task's photo, or nil if no download runs.
  public func progress(of taskID: String) async throws -> Double? {
    guard let node = try await self.node(of: taskID) else { return nil }
    return session.progressManager.dataDownloadProgress(forNodeID: node.uuid)?.fractionCompleted
  }

  /// Returns the thumbnail of a task's photo, which is downloaded without the photo.
  public func thumbnail(of taskID: String) async throws -> Data? {
    guard let node = try await self.node(of: taskID) else { return nil }
    if let stored = session.diskManager.nodeThumbnail(node) {
      return try stored.cryptoFile.map { try ZDCFileConversion.decryptCryptoFile(intoMemory: checkSize($0)) }
    }
    let options = ZDCDownloadOptions()
    options.cacheToDiskManager = true
    return try await session.downloadManager.downloadNodeMeta(node, components: .thumbnail, options: options).thumbnail
  }

  private func node(of taskID: String) async throws -> ZDCNode? {
    try await account.tree.read { _, cloud in cloud.photoNode(of: taskID) }
  }
}
