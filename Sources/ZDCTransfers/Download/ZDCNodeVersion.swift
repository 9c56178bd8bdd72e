public import Foundation
package import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

/// An earlier version of a node: what one signed commit said about it, until a later one replaced it.
///
/// The server keeps earlier versions for a while. What is here comes from the version's record, which the device has
/// compared with the hash in its verified log. Only ``isContentKept`` and ``keptUntil`` are the server's word.
///
/// ```swift
/// for version in try await session.syncManager.versions(ofNodeID: node.uuid, localUserID: user.uuid) {
///   print(version.date, version.content?.dataSize ?? 0, version.isContentKept)
/// }
/// ```
public struct ZDCNodeVersion: Sendable, Identifiable {
  /// Identifies the version among all versions of all nodes.
  public let id: String
  /// ``ZDCNode/uuid`` of the node.
  public let nodeID: String
  /// The name that the node had.
  public let name: String
  /// When the version was made, by the clock of the device that made it.
  public let date: Date
  /// The text of the user ID of its author.
  public let authorID: String
  /// The content; nil if the version has none.
  public let content: ZDCCloudDataInfo?
  /// When it was replaced, by the clock of the device that replaced it.
  public let replacedAt: Date
  /// The text of the user ID of the person who replaced it.
  public let replacedByID: String
  /// Whether the server says that it still has the content.
  public let isContentKept: Bool
  /// The time until which the server says that it keeps the version; nil if it does not say one.
  public let keptUntil: Date?
  /// What the node's record said about the content; nil if the version has none.
  package let target: ContentTarget?
  package let former: FormerVersion
  package let remoteContent: NodeRow.RemoteContent?

  package init(
    id: String, nodeID: String, name: String, date: Date, authorID: String, isContentKept: Bool, keptUntil: Date?,
    target: ContentTarget?, former: FormerVersion, remoteContent: NodeRow.RemoteContent?
  ) {
    self.id = id
    self.nodeID = nodeID
    self.name = name
    self.date = date
    self.authorID = authorID
    content = target?.info
    replacedAt = Date(timeIntervalSince1970: Double(former.endMs) / 1_000)
    replacedByID = former.endWriter.text
    self.isContentKept = isContentKept
    self.keptUntil = keptUntil
    self.target = target
    self.former = former
    self.remoteContent = remoteContent
  }
}

extension ZDCDownloadManager {
  /// Downloads the content of an earlier version.
  ///
  /// Nothing of it is handed out before all of it is verified against the version's record.
  ///
  /// ```swift
  /// let file = try await session.downloadManager.downloadNodeData(of: version)
  /// defer { session.diskManager.deleteFileIfUnmanaged(file.fileURL) }
  /// let before = try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
  /// ```
  ///
  /// - Parameter progress: called with the number of bytes received so far, and their total.
  /// - Returns: a file of ciphertext that belongs to the caller.
  /// - Throws: ``ZDCError`` with `noContent`, and otherwise as ``downloadNodeData(_:options:)``: `ZDCServerError` with
  ///   `blobGone` if the server no longer keeps the content.
  public func downloadNodeData(
    of version: ZDCNodeVersion, progress: @escaping @Sendable (UInt64, UInt64) -> Void = { _, _ in }
  ) async throws -> ZDCCryptoFile {
    guard let target = version.target else { throw ZDCError(.noContent) }
    let key = DownloadKey(nodeID: version.nodeID, part: .data)
    let listed = progressManager.begin(key, user: target.user.text, downloads: self)
    do {
      let file = try await transfers.value(target.key, interest: TransferInterest(progress)) { [self] context in
        try await recordingSecurityErrors(of: target) { try await transfer(target, context, listed) }
      }
      listed.end(hasSucceeded: true)
      return file
    } catch {
      listed.end(hasSucceeded: false)
      throw translated(error)
    }
  }
}
