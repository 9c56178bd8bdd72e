package import ZDCProtocol

/// The older generations of a node's key that are still in use, sealed under the newest (PROTOCOL 3.5, `historyWrap`).
package struct KeyHistory: Sendable, Equatable {
  package struct Entry: Sendable, Equatable {
    package let keyGen: UInt32
    package let key: NodeKey

    package init(keyGen: UInt32, key: NodeKey) {
      self.keyGen = keyGen
      self.key = key
    }
  }

  /// Sorted by generation in ascending order, all below the key's own generation.
  package let entries: [Entry]

  package init() { entries = [] }

  private init(entries: [Entry]) { self.entries = entries }

  /// Opens a `historyWrap` with the node's newest key. An empty wrap is an empty history.
  ///
  /// - Throws: `recordAuthFailed` if it does not open, `nonCanonicalEncoding` or `limitExceeded` if its format is
  ///   wrong.
  package init(
    opening wrap: [UInt8], tree: TreeID, node: NodeID, key: NodeKey, keyGen: UInt32
  ) throws(ZDCSecurityError) {
    guard !wrap.isEmpty else {
      self.init()
      return
    }
    let context = Self.context(tree: tree, node: node, keyGen: keyGen)
    let plaintext: [UInt8]
    do throws(ZDCSecurityError) {
      plaintext = try Seal.open(key: key.historyKey, label: "old-keys", context: context, wrap)
    } catch { throw ZDCSecurityError(.recordAuthFailed, node: node) }
    try self.init(decoding: plaintext, below: keyGen, node: node)
  }

  /// Opens the history of a zone's key, which is stored in the zone's access list.
  package init(of zone: ZoneACL.Fields, key: NodeKey) throws(ZDCSecurityError) {
    try self.init(
      opening: zone.historyWrap, tree: zone.zone.tree, node: zone.zone.root, key: key, keyGen: zone.zoneKeyGen)
  }

  /// Returns whether a key is the zone's key according to an access list, or opens the list's older keys.
  package static func isOpened(_ zone: ZoneACL.Fields, by key: NodeKey) -> Bool {
    if zone.commitments == key.commitments { return true }
    return (try? KeyHistory(of: zone, key: key)).map { !$0.entries.isEmpty } ?? false
  }

  private init(decoding plaintext: [UInt8], below keyGen: UInt32, node: NodeID) throws(ZDCSecurityError) {
    let count = plaintext.count / 36
    try require(count <= Limits.oldKeyGenerations, .limitExceeded, node: node)
    try require(count > 0 && plaintext.count % 36 == 0, .nonCanonicalEncoding, node: node)
    var reader = ByteReader(plaintext)
    var entries: [Entry] = []
    for _ in 0..<count {
      let generation = try reader.readUInt32()
      let isAscending = generation > entries.last?.keyGen ?? 0 && generation < keyGen
      guard isAscending, let key = NodeKey(try reader.read(count: 32)) else {
        throw ZDCSecurityError(.nonCanonicalEncoding, node: node)
      }
      entries.append(Entry(keyGen: generation, key: key))
    }
    self.init(entries: entries)
  }

  /// Returns the history with one more generation, for a rotation.
  ///
  /// - Parameter used: The generations that live children still use; others are dropped. Nil keeps all.
  /// - Throws: `limitExceeded` for too many generations (re-key the children first), `staleKeyGeneration` for a
  ///   generation that is not above the last one.
  package func adding(_ entry: Entry, keeping used: Set<UInt32>? = nil) throws(ZDCSecurityError) -> KeyHistory {
    try require(entry.keyGen > entries.last?.keyGen ?? 0, .staleKeyGeneration)
    let kept = (entries + [entry]).filter { used?.contains($0.keyGen) ?? true }
    try require(kept.count <= Limits.oldKeyGenerations, .limitExceeded)
    return KeyHistory(entries: kept)
  }

  /// Returns the key of an older generation.
  package func key(_ keyGen: UInt32) -> NodeKey? {
    entries.first { $0.keyGen == keyGen }?.key
  }

  /// Seals the history under the node's newest key. Returns an empty array for an empty history.
  package func seal(tree: TreeID, node: NodeID, key: NodeKey, keyGen: UInt32) throws(CryptoFailure) -> [UInt8] {
    var source = SystemRandomSource()
    return try seal(tree: tree, node: node, key: key, keyGen: keyGen, random: &source)
  }

  package func seal(
    tree: TreeID, node: NodeID, key: NodeKey, keyGen: UInt32, random: inout some RandomSource
  ) throws(CryptoFailure) -> [UInt8] {
    guard !entries.isEmpty else { return [] }
    var plaintext = ByteWriter(capacity: entries.count * 36)
    for entry in entries {
      plaintext.append(entry.keyGen)
      plaintext.append(contentsOf: entry.key.exportBytes())
    }
    let context = Self.context(tree: tree, node: node, keyGen: keyGen)
    return try Seal.seal(
      key: key.historyKey, label: "old-keys", context: context, plaintext.bytes, random: &random)
  }

  private static func context(tree: TreeID, node: NodeID, keyGen: UInt32) -> [UInt8] {
    var context = ByteWriter(capacity: 52)
    context.append(tree)
    context.append(node)
    context.append(keyGen)
    return context.bytes
  }
}
