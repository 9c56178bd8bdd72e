internal import Foundation
internal import GRDB
package import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

extension ZDCDiskManager {
  /// Stores an import.
  ///
  /// First writes and syncs the complete file, under a name that nothing refers to, then writes its row. A process that
  /// ends between the two leaves a file without a row, which the next launch deletes.
  ///
  /// - Returns: nil for a placeholder.
  package func take(
    _ diskImport: ZDCDiskImport, _ owner: DiskOwner, mayLackNode: Bool = false
  ) throws -> ZDCCryptoFile? {
    let made = try make(diskImport.source)
    do {
      try database.joinedWrite { try self.store(made, diskImport.values, owner, mayLackNode: mayLackNode, $0) }
    } catch {
      if let made { discard(made) }
      throw error
    }
    try onStep(.committed)
    return try made.map { try cryptoFile($0.file, $0.token) }
  }

  /// A file on disk without a row, and the hold that keeps it there.
  package struct MadeFile: Sendable {
    package var file: DiskFileRow.File
    package var token: ZDCFileRetainToken
  }

  /// Deletes the file when its last hold is released.
  package func discard(_ made: MadeFile) {
    _ = holds.remove(made.file.name)
  }

  private func store(
    _ made: MadeFile?, _ values: ZDCDiskImport.Values, _ owner: DiskOwner, mayLackNode: Bool,
    _ transaction: ZDCReadWriteTransaction
  ) throws {
    let node = try nodeRow(owner, mayLackNode: mayLackNode, transaction)
    var row = DiskFileRow(owner: owner, file: made?.file, isPersistent: values.storePersistently)
    row.eTag = values.eTag
    row.contentETag = node?.content?.content.eTag
    row.lifetimeMs =
      values.expiration == 0 ? disk.limits.lifetime[owner.kind] : Self.milliseconds(values.expiration)
    if values.deleteAfterUpload, try isUploadQueued(owner, node, transaction) {
      row.afterUpload = .delete
      // The upload may need the file, so neither the size limit nor the lifetime may remove it earlier.
      row.isPersistent = true
    } else if values.storePersistently, values.migrateToCacheAfterUpload {
      row.afterUpload = .migrate
    }
    _ = try put(row, node: node?.id, made, transaction)
    if node == nil, owner.kind != .userAvatar { transaction.uninsertedFiles.mayExist = true }
  }

  /// Whether an upload will remove the file. This includes a node that has yet to be inserted: it will have an upload.
  private func isUploadQueued(
    _ owner: DiskOwner, _ node: NodeRow?, _ transaction: ZDCReadTransaction
  ) throws -> Bool {
    guard let node else { return owner.kind != .userAvatar }
    return try transaction.operations.operations(node: node.id).contains { $0.kind == .putData }
  }

  /// - Returns: whether the file is kept.
  package func put(
    _ row: DiskFileRow, node: Int64?, _ made: MadeFile?, _ transaction: ZDCReadWriteTransaction
  ) throws -> Bool {
    let isKept = try DiskWriter(transaction).put(row, node: node)
    if let made {
      // The hold lasts until the outcome is known, so that no process mistakes the file for a leftover of a crash.
      transaction.database.afterNextTransaction(
        onCommit: { _ in withExtendedLifetime(made.token) {} }, onRollback: { _ in self.discard(made) })
    }
    try onStep(.rowWritten)
    return isKept
  }

  /// - Parameter mayLackNode: whether the app made the node and will insert it later.
  /// - Returns: nil for an avatar, and for a node that has yet to be inserted.
  func nodeRow(
    _ owner: DiskOwner, mayLackNode: Bool = false, _ transaction: ZDCReadTransaction
  ) throws -> NodeRow? {
    guard owner.kind != .userAvatar else { return nil }
    if let node = try transaction.nodes.node(uuid: owner.id) { return node }
    guard mayLackNode else { throw ZDCError(.nodeNotFound) }
    return nil
  }

  // MARK: Files

  /// Creates the file; nil for a placeholder.
  package func make(_ source: ZDCDiskImport.Source) throws -> MadeFile? {
    switch source {
    case .nothing: nil
    case .cleartext(let content): try make { try self.seal(content, $0) }
    case .cleartextFile(let url): try make { try self.seal(.cleartextFile(url), $0) }
    case .cryptoFile(let file): try make { try self.adopt(file, $0) }
    }
  }

  private func make(_ body: (_ name: String) throws -> DiskFileRow.File) throws -> MadeFile {
    try folder.create()
    try holds.prepare()
    let name = DiskFolder.newName()
    let token = holds.token(name)
    do {
      let file = try body(name)
      try folder.synchronize()
      try onStep(.fileSynced)
      return MadeFile(file: file, token: token)
    } catch {
      _ = holds.remove(name)
      throw translated(error)
    }
  }

  /// Seals the content in slices, under a fresh key.
  private func seal(_ content: ContentSource, _ name: String) throws -> DiskFileRow.File {
    let sealer = try ContentSealer(dataSize: content.size)
    let file = try LocalFile.create(folder.url(name))
    try onStep(.fileBegun)
    var hashes: [MerkleHash] = []
    func emit(_ leaf: SealedLeaf) throws {
      hashes.append(leaf.hash)
      try file.write(leaf.bytes)
    }
    var reader = try content.open()
    while let slice = try reader.next() { try sealer.push(slice, emit: emit) }
    let sealed = try sealer.finish(dataVersion: 1, emit: emit)
    try content.checkUnchanged()
    try onStep(.fileWritten)
    try file.synchronize()
    let reference = try ContentReference(content: sealed, secrets: sealer.secrets)
    return DiskFileRow.File(
      name: name, format: .cacheFile, reference: reference, leaves: Self.bytes(of: hashes, reference))
  }

  /// Links the sealed file under its new name, or copies it where links are not possible.
  private func adopt(_ source: ZDCCryptoFile, _ name: String) throws -> DiskFileRow.File {
    try LocalFile.duplicate(source.fileURL, to: folder.url(name))
    try onStep(.fileWritten)
    try LocalFile.read(folder.url(name)).synchronize()
    return DiskFileRow.File(
      name: name, format: source.fileFormat, reference: source.reference,
      leaves: Self.bytes(of: source.leaves.hashes, source.reference))
  }

  /// Returns the hashes to store: none for a single leaf, whose hash is the root that the row already has.
  private static func bytes(of hashes: [MerkleHash], _ reference: ContentReference) -> [UInt8] {
    guard reference.layout.leafCount > 1 else { return [] }
    var out = ByteWriter(capacity: hashes.count * 32)
    for hash in hashes { out.append(hash) }
    return out.bytes
  }
}
