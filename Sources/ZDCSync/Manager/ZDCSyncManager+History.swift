internal import Foundation
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTransfers
public import ZDCTreesystem

extension ZDCSyncManager {
  /// Returns the earlier versions of a node that the server keeps, newest first.
  ///
  /// A version begins with each change of the node: its content, its name, its place, its keys. The verified log of this
  /// device says which versions there were; the server can only refuse one. It keeps them for 30 days after they were
  /// replaced, unless it is configured otherwise, and releases content earlier where the owner's account is full.
  ///
  /// Versions that were replaced before this user became a member, or before the node's branch was shared separately, are
  /// not listed, nor are those that the server no longer keeps or that cannot be opened.
  ///
  /// ```swift
  /// let versions = try await session.syncManager.versions(ofNodeID: node.uuid, localUserID: user.uuid)
  /// if let yesterday = versions.first(where: { $0.isContentKept }) {
  ///   let file = try await session.downloadManager.downloadNodeData(of: yesterday)
  ///   importDocument(file, of: node)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - nodeID: The node's ``ZDCNode/uuid``.
  ///   - localUserID: The local user who has the node.
  ///   - limit: Maximum number of versions.
  /// - Throws: ``ZDCError``: `nodeNotFound`, `localUserNotFound`; `ZDCServerError`, `ZDCTransportError`.
  public func versions(
    ofNodeID nodeID: String, localUserID: String, limit: Int = 100
  ) async throws -> [ZDCNodeVersion] {
    do {
      let session = try await engine(for: localUserID).session
      return try await NodeHistory(session: session).versions(ofNodeID: nodeID, limit: max(limit, 0))
    } catch { throw publicError(error) }
  }

  /// Makes the content of an earlier version the node's newest content. Name and place stay as they are.
  ///
  /// The change is queued like any other, and your delegate is notified of the modified data at once. Nothing is
  /// downloaded or sent again. If another device changes the content before the change is sent, that content stays, and
  /// the merge journal has an entry.
  ///
  /// ```swift
  /// let versions = try await session.syncManager.versions(ofNodeID: node.uuid, localUserID: user.uuid)
  /// if let version = versions.first(where: { $0.isContentKept }) {
  ///   try await session.syncManager.restore(version, localUserID: user.uuid)
  /// }
  /// ```
  ///
  /// - Returns: The node.
  /// - Throws: ``ZDCCloudError``: `conflict` if other content of the node is queued, `notAllowed` if the local user may not
  ///   write, `invalidParameter` if the version has no content, or the one that the node has; ``ZDCError``: `nodeNotFound`,
  ///   `nodeNotUploaded`; or your delegate's error, and then nothing has changed.
  @discardableResult
  public func restore(_ version: ZDCNodeVersion, localUserID: String) async throws -> ZDCNode {
    do {
      let session = try await engine(for: localUserID).session
      return try await NodeHistory(session: session).restore(version)
    } catch { throw publicError(error) }
  }

  /// Returns the deleted nodes of the user's trees that the server keeps, newest deletion first. Nodes that were deleted
  /// with a node above them are counted in that one.
  ///
  /// Nodes that were moved to another branch are in the list of their old one, and those that were deleted before the user
  /// became a member are in none.
  ///
  /// ```swift
  /// let deleted = try await session.syncManager.deletedNodes(localUserID: user.uuid)
  /// let more = try await session.syncManager.deletedNodes(localUserID: user.uuid, after: deleted.last)
  /// ```
  ///
  /// - Parameters:
  ///   - localUserID: The local user whose trees are searched.
  ///   - last: The last one of the page before; nil for the first page.
  ///   - limit: Maximum number of nodes.
  /// - Throws: ``ZDCError``: `localUserNotFound`; `ZDCServerError`, `ZDCTransportError`.
  public func deletedNodes(
    localUserID: String, after last: ZDCDeletedNode? = nil, limit: Int = 100
  ) async throws -> [ZDCDeletedNode] {
    do {
      let session = try await engine(for: localUserID).session
      return try await Trash(session: session).page(before: last?.former.id ?? .max, limit: max(limit, 0))
    } catch { throw publicError(error) }
  }

  /// Creates a deleted node again, with all nodes that were deleted with it, by queued operations.
  ///
  /// The node returns to the folder that it was in. If the folder is gone, name another one of the same branch. If another
  /// node has its name, it becomes "Name 2". Your delegate is notified of each restored node as of one that another device
  /// has created. All of it is one transaction: a process that ends in the middle has restored everything or nothing.
  /// Nothing is downloaded or sent again, and the nodes keep their ``ZDCNode/cloudID``.
  ///
  /// ```swift
  /// if let deleted = try await session.syncManager.deletedNodes(localUserID: user.uuid).first {
  ///   let result = try await session.syncManager.restore(deleted, localUserID: user.uuid)
  ///   print(result.restored, "nodes are back,", result.left, "are gone")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - deleted: One of ``deletedNodes(localUserID:after:limit:)``.
  ///   - folderID: The ``ZDCNode/uuid`` of the folder to restore it in; nil for the one that it was in.
  ///   - localUserID: The local user whose tree it is.
  /// - Throws: ``ZDCCloudError``: `missingParent` if its folder is gone, `conflict` if the node is in the tree again,
  ///   `notAllowed`, `invalidParameter` for a folder in another branch; `ZDCServerError` with `gone` if the server no
  ///   longer keeps it; `ZDCSecurityError` with `objectMissing` if the server withholds it, or with the code of a record
  ///   that cannot be opened; `ZDCTransportError`; or your delegate's error, and then nothing has changed.
  @discardableResult
  public func restore(
    _ deleted: ZDCDeletedNode, intoFolderID folderID: String? = nil, localUserID: String
  ) async throws -> ZDCTrashRestoration {
    do {
      let session = try await engine(for: localUserID).session
      return try await TrashRestore(session: session, top: deleted.former).run(into: folderID)
    } catch { throw publicError(error) }
  }
}
