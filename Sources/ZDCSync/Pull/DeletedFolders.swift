internal import ZDCCrypto
internal import ZDCProtocol

/// Folders that this device deletes, and into which other devices have moved nodes since.
///
/// The key of such a node may be a new one, which only the folder's key opens. The folder's row had that key and went
/// when the app deleted the folder. The folder's record, which the log still names, opens with the key of the folder
/// above.
struct DeletedFolders: Sendable {
  private var records: [RecordHash: PageContents.Record] = [:]
  /// The records that the server does not have.
  private var missing: Set<RecordHash> = []
  /// The folders whose records have to be read.
  private(set) var wanted: Set<LogNode> = []

  /// Notes which of these folders have to be read.
  ///
  /// - Returns: Whether there are any. One whose record the server does not have is not asked for again.
  mutating func needs(_ folders: [LogNode]) -> Bool {
    let unread = folders.filter { records[$0.record] == nil && !missing.contains($0.record) }
    wanted.formUnion(unread)
    return !unread.isEmpty
  }

  mutating func want(_ folders: Set<LogNode>) { wanted.formUnion(folders) }

  /// Adds the records that were read of the wanted folders.
  ///
  /// - Parameter isWholeLog: Whether the log was read to its end. Until then a later commit may have replaced a record
  ///   that the server does not have.
  /// - Returns: Whether nodes that waited for these records can be applied now, or wait for them no longer.
  mutating func add(_ found: [RecordHash: PageContents.Record], isWholeLog: Bool) -> Bool {
    let asked = wanted.map(\.record)
    wanted = []
    if isWholeLog { missing.formUnion(asked.filter { found[$0] == nil }) }
    records.merge(found) { old, _ in old }
    return isWholeLog || !found.isEmpty
  }

  /// Returns the keys of the last of some folders, each of which is in the one before.
  ///
  /// - Parameters:
  ///   - above: The keys that the first folder hangs on.
  ///   - keyGen: The generation that a child of the last folder hangs on.
  func keys(
    of folders: [LogNode], below above: ParentKeys, keyGen: UInt32
  ) throws(ZDCSecurityError) -> ParentKeys {
    let keyGens = folders.dropFirst().map(\.parentKeyGen) + [keyGen]
    var keys = above
    for (folder, keyGen) in zip(folders, keyGens) {
      guard let record = records[folder.record]?.record else {
        throw ZDCSecurityError(.objectMissing, node: folder.node)
      }
      keys = try RecordOpener.open(record, parent: keys).parentKeys(keyGen: keyGen)
    }
    return keys
  }
}

extension OpenedRecord {
  /// Returns the keys of one of the node's generations, for children that hang on it.
  fileprivate func parentKeys(keyGen: UInt32) throws(ZDCSecurityError) -> ParentKeys {
    if record.fields.keyGen == keyGen { return parentKeys }
    guard let key = try history().key(keyGen) else {
      throw ZDCSecurityError(.staleKeyGeneration, node: record.fields.node)
    }
    return ParentKeys(key, keyGen: keyGen)
  }
}
