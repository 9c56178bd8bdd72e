internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// The keys that open former versions, inside one transaction.
///
/// A version's key is wrapped with a generation of its parent's key. If the parent still is what it was at that commit,
/// its row has the key; otherwise the parent's version of that time has it, or, for as long as it is kept, the history in
/// the parent's row.
struct FormerKeys {
  private let transaction: ZDCReadTransaction
  private let records: [RecordHash: PageContents.Record]
  /// The keys of former parents, by the version's number; nil for those that do not open, or are being opened.
  private var former: [Int64: OpenedRecord?] = [:]

  /// - Parameter records: The fetched records of what ``needed(for:_:)`` returned.
  init(records: [RecordHash: PageContents.Record], _ transaction: ZDCReadTransaction) {
    (self.transaction, self.records) = (transaction, records)
  }

  /// Returns the versions, and those of nodes above them at that time.
  static func needed(
    for versions: [FormerVersion], _ transaction: ZDCReadTransaction
  ) throws -> [FormerVersion] {
    var all = versions
    var known = Set(versions.map(\.id))
    var next = 0
    while next < all.count {
      if let above = try parent(of: all[next], transaction), known.insert(above.id).inserted { all.append(above) }
      next += 1
    }
    return all
  }

  /// Returns what the parent was when the version was put; nil if it still is that. The root of a zone has all its keys.
  private static func parent(of version: FormerVersion, _ transaction: ZDCReadTransaction) throws -> FormerVersion? {
    let leaf = version.expected.leaf
    guard leaf.parent != .zero else { return nil }
    let above = try FormerStore(transaction).version(of: leaf.parent, at: leaf.putSeq, zone: version.zone)
    return above?.expected.leaf.parent == .zero ? nil : above
  }

  /// Opens a version.
  ///
  /// - Returns: Nil if its record is not among the fetched ones.
  /// - Throws: `ZDCSecurityError` if the record is not what the log says, or does not open.
  mutating func open(_ version: FormerVersion) throws -> OpenedFormer? {
    guard let item = records[version.record], let zone = try transaction.zones.zone(id: version.zone)?.zone else {
      return nil
    }
    try version.expected.check(item.record, in: zone)
    if let keys = try formerKeys(above: version), let opened = try Self.opened(item.record, below: keys) {
      return OpenedFormer(item: item, opened: opened)
    }
    if let keys = try liveKeys(above: version, zone), let opened = try Self.opened(item.record, below: keys) {
      return OpenedFormer(item: item, opened: opened)
    }
    return OpenedFormer(item: item, opened: try RecordOpener.open(item.record, key: try ownKey(version, zone)))
  }

  /// Returns nil if these are not the keys: another key may open the record.
  private static func opened(_ record: NodeRecord, below keys: ParentKeys) throws -> OpenedRecord? {
    do throws(ZDCSecurityError) {
      return try RecordOpener.open(record, parent: keys)
    } catch {
      guard error.code == .recordAuthFailed else { throw error }
      return nil
    }
  }

  private mutating func formerKeys(above version: FormerVersion) throws -> ParentKeys? {
    guard let parent = try Self.parent(of: version, transaction), let opened = try openedParent(parent) else {
      return nil
    }
    let keyGen = version.expected.leaf.parentKeyGen
    if opened.record.fields.keyGen == keyGen { return ParentKeys(opened.key, keyGen: keyGen) }
    return try opened.history().key(keyGen).map { ParentKeys($0, keyGen: keyGen) }
  }

  private mutating func openedParent(_ parent: FormerVersion) throws -> OpenedRecord? {
    if let known = former[parent.id] { return known }
    former[parent.id] = .some(nil)
    let opened: OpenedRecord?
    do { opened = try open(parent)?.opened } catch is ZDCSecurityError { opened = nil }
    former[parent.id] = .some(opened)
    return opened
  }

  private func liveKeys(above version: FormerVersion, _ zone: ZoneID) throws -> ParentKeys? {
    let leaf = version.expected.leaf
    guard let row = try transaction.nodes.parent(zone: version.zone, nodeID: leaf.parent), !row.isPlaceholder else {
      return nil
    }
    do {
      return try transaction.nodes.keys(of: row, keyGen: leaf.parentKeyGen, tree: zone.tree)
    } catch is ZDCSecurityError {
      return nil
    }
  }

  /// Returns the key of a version whose node is live.
  private func ownKey(_ version: FormerVersion, _ zone: ZoneID) throws -> NodeKey {
    let (node, keyGen) = (version.node, version.expected.leaf.keyGen)
    guard let row = try transaction.nodes.node(zone: version.zone, nodeID: node) else {
      throw ZDCSecurityError(.staleKeyGeneration, node: node)
    }
    if row.keyGen == keyGen { return row.key }
    let history = try KeyHistory(
      opening: row.historyWrap, tree: zone.tree, node: node, key: row.key, keyGen: row.keyGen)
    guard let key = history.key(keyGen) else { throw ZDCSecurityError(.staleKeyGeneration, node: node) }
    return key
  }
}
