import Testing
import ZDCProtocol

@testable import ZDCCrypto

/// Reads a server's copy of a shared tree: verifies all of it, and opens it as each of the members whose keys are in the file.
struct TreeReading {
  /// A zone's log after one of its commits.
  struct Moment {
    let step: ZoneStep
    let state: MemoryZoneState
    let puts: [ZoneOperation.Put]

    var list: ZoneACL { step.head.acl }
    func names(_ user: UserID) -> Bool { list.fields.entry(for: user) != nil }
  }

  let vector: Vector
  let zones: [[Moment]]
  let records: [RecordHash: [UInt8]]
  let contents: [BlobID: [UInt8]]
  let grants: [Grant]

  init(_ vector: Vector) throws {
    self.vector = vector
    records = Dictionary(
      try vector.byteLists("records").map { (RecordHash(labelledHash: "record", $0), $0) }, uniquingKeysWith: { $1 })
    contents = Dictionary(
      try vector.objects("contents").map { (try #require(BlobID(try $0.bytes("blobID"))), try $0.bytes("bytes")) },
      uniquingKeysWith: { $1 })
    let log = try LogReading(vector, records: records)
    grants = try vector.byteLists("grants").map { try Grant($0) }
    zones = log.zones
    try checkGrants()
    try checkContents()
  }

  /// Opens the tree as each reader, and compares.
  func open() throws {
    for reader in try vector.objects("readers") {
      let member = try MemberReading(
        self, user: try #require(UserID(try reader.bytes("user"))),
        key: try DecryptionKey(seed: try #require(DecryptionSeed(try reader.bytes("encSeed")))))
      #expect(try member.tree() == reader.list("tree"))
      #expect(try member.closedRecords().count == reader.int("closed"))
    }
  }

  func record(_ hash: RecordHash) throws -> NodeRecord { try Self.record(hash, in: records) }

  static func record(_ hash: RecordHash, in records: [RecordHash: [UInt8]]) throws -> NodeRecord {
    guard let bytes = records[hash] else { throw ZDCSecurityError(.objectMissing) }
    return try NodeRecord(bytes)
  }

  /// Each grant is one that a list names, and each list has its grants.
  private func checkGrants() throws {
    let lists = zones.joined().map(\.list.fields)
    for grant in grants {
      let isNamed = lists.contains { list in
        list.zone == grant.zone && list.zoneKeyGen == grant.zoneKeyGen
          && list.entry(for: grant.user)?.wrapHash == grant.wrapHash
      }
      try require(isNamed, .grantHashMismatch)
    }
    for entry in lists.flatMap(\.entries) {
      try require(grants.contains { $0.wrapHash == entry.wrapHash }, .grantMissing)
    }
  }

  /// Each content is one that a record names, and has its length and leaves.
  private func checkContents() throws {
    let puts = zones.joined().flatMap(\.puts)
    let named = try puts.compactMap { try record($0.record).fields.content }
    for (blob, bytes) in contents {
      guard let content = named.first(where: { $0.blobID == blob }) else { throw ZDCSecurityError(.objectMissing) }
      let leaves = ContentGeometry.leafCount(cipherLength: content.cipherLength)
      try require(UInt64(bytes.count) == content.cipherLength, .contentHashMismatch)
      let hashes = (0..<leaves).map { leaf in
        let range = ContentGeometry.leafRange(leaf, cipherLength: content.cipherLength)
        return MerkleTree.leafHash(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
      }
      let root = ContentRoot(reinterpreting: MerkleTree.root(leafHashes: hashes))
      try require(root == content.contentRoot, .contentHashMismatch)
    }
    for content in named { try require(contents[content.blobID] != nil, .objectMissing) }
  }
}

/// Replays the logs of a copy, and checks each record against the put that names it.
private struct LogReading {
  private(set) var zones: [[TreeReading.Moment]] = []
  private let records: [RecordHash: [UInt8]]
  private let directory: ChainDirectory
  private var splits: [ZoneSplit] = []

  init(_ vector: Vector, records: [RecordHash: [UInt8]]) throws {
    self.records = records
    let owner = try IdentityReplay.verify(try vector.byteLists("links").map { try IdentityLink($0) })
    let others = try vector.byteLists("others").map { try IdentityReplay.verify([try IdentityLink($0)]) }
    directory = ChainDirectory(identity: owner, others: others)
    for steps in try vector.lists("zones") { zones.append(try replay(steps)) }
  }

  private mutating func replay(_ steps: [Vector]) throws -> [TreeReading.Moment] {
    var moments: [TreeReading.Moment] = []
    for step in steps {
      let commit = try ZoneCommit(try step.bytes("commit"))
      let acl = step["acl"] == nil ? nil : try ZoneACL(try step.bytes("acl"))
      let list = step["list"] == nil ? nil : try StateList(try step.bytes("list"))
      let last = moments.last
      var state = last?.state ?? MemoryZoneState()
      let next = try ZoneReplay(identities: directory).advance(
        commit, acl: acl, list: list, after: last?.step.head, to: &state)
      if last == nil { try checkBeginning(commit, next.head.acl.fields) }
      let moment = TreeReading.Moment(step: next, state: state, puts: commit.fields.puts)
      try checkRecords(moment, commit.fields) { last?.state.leaf($0) ?? list?.node($0) }
      splits += next.split.map { [$0] } ?? []
      moments.append(moment)
    }
    return moments
  }

  /// A trunk begins as its owner's chain says, another zone as the split says.
  private func checkBeginning(_ commit: ZoneCommit, _ list: ZoneACL.Fields) throws {
    if list.zone == ZoneID(trunkOf: list.zone.tree) {
      try directory.identity.checkGenesis(commit, trunk: list.trunk, appTreeID: list.appTreeID)
    } else {
      guard let split = splits.first(where: { $0.zone == list.zone }) else {
        throw ZDCSecurityError(.splitMismatch)
      }
      try split.check(commit)
    }
  }

  private func checkRecords(
    _ moment: TreeReading.Moment, _ commit: ZoneCommit.Fields, _ before: (NodeID) -> LogNode?
  ) throws {
    for put in moment.puts {
      let record = try TreeReading.record(put.record, in: records)
      let replaced = before(put.node)
      let previous = try replaced.map { try TreeReading.record($0.record, in: records) }
      try RecordRules.check(record, put: put, zone: commit.zone, replaced: replaced, previous: previous)
      try RecordRules.check(record, commit: commit, acl: moment.list.fields)
      try RecordRules.check(record, permissions: moment.step.permissions)
      guard commit.genesisState != nil, put.node == commit.zone.root, let previous else { continue }
      try RecordRules.check(splitRoot: record, continuing: previous)
    }
  }
}

/// Opens what one member can open: the logs up to the last commit whose list names them.
private struct MemberReading {
  private struct Parent {
    let leaf: LogNode
    let key: NodeKey
    let history: KeyHistory
  }

  private let copy: TreeReading
  private let user: UserID
  private let key: DecryptionKey

  init(_ copy: TreeReading, user: UserID, key: DecryptionKey) throws {
    (self.copy, self.user, self.key) = (copy, user, key)
  }

  /// Returns the nodes in the order of their paths.
  func tree() throws -> [VectorValue] {
    guard let home = copy.zones.first?.last(where: { $0.names(user) }) else { throw ZDCSecurityError(.grantMissing) }
    var nodes: [String: VectorValue] = [:]
    try readZone(home, at: "", into: &nodes)
    return nodes.sorted { Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8)) }.map(\.value)
  }

  private func zoneKey(_ list: ZoneACL) throws -> NodeKey {
    let grant = copy.grants.first { $0.wrapHash == list.fields.entry(for: user)?.wrapHash }
    guard let grant else { throw ZDCSecurityError(.grantMissing) }
    return try GrantOpener.open(grant, acl: list, user: user, key: key)
  }

  private func readZone(_ zone: TreeReading.Moment, at path: String, into nodes: inout [String: VectorValue]) throws {
    let list = zone.list.fields
    guard let leaf = zone.state.leaf(list.zone.root) else { throw ZDCSecurityError(.objectMissing) }
    let key = try zoneKey(zone.list)
    _ = try RecordOpener.open(zoneRoot: try copy.record(leaf.record), key: key, commitments: list.commitments)
    let root = Parent(leaf: leaf, key: key, history: try KeyHistory(of: list, key: key))
    try readChildren(of: root, in: zone, at: path, into: &nodes)
  }

  private func readChildren(
    of parent: Parent, in zone: TreeReading.Moment, at path: String, into nodes: inout [String: VectorValue]
  ) throws {
    for leaf in zone.state.leaves.values.sorted(by: { $0.node < $1.node }) where leaf.parent == parent.leaf.node {
      let isNewest = leaf.parentKeyGen == parent.leaf.keyGen
      guard let above = isNewest ? parent.key : parent.history.key(leaf.parentKeyGen) else {
        throw ZDCSecurityError(.staleKeyGeneration)
      }
      let opened = try RecordOpener.open(
        try copy.record(leaf.record), parent: ParentKeys(above, keyGen: leaf.parentKeyGen))
      let place = path + "/" + opened.name
      try require(nodes[place] == nil, .duplicateName)
      nodes[place] = try describe(opened, at: place)
      let node = Parent(leaf: leaf, key: opened.key, history: try opened.history())
      try readChildren(of: node, in: zone, at: place, into: &nodes)
      if let target = opened.secrets.pointer { try follow(target, at: place, into: &nodes) }
    }
  }

  /// Shows a zone in place of a pointer, if the user is a member of it.
  private func follow(_ target: PointerTarget, at path: String, into nodes: inout [String: VectorValue]) throws {
    let zone = copy.zones.first { $0[0].step.head.zone == target.zone && $0[0].step.head.hash == target.genesis }
    guard let moment = zone?.last(where: { $0.names(user) }) else { return }
    try readZone(moment, at: path, into: &nodes)
  }

  private func describe(_ opened: OpenedRecord, at path: String) throws -> VectorValue {
    guard let reference = opened.contentReference else { return ["path": .text(path)] }
    let bytes = copy.contents[reference.content.blobID] ?? []
    let data = try ContentOpener.openSmall(bytes, reference).data
    #expect(data == pattern(data.count))
    return ["path": .text(path), "size": .number(data.count)]
  }

  // MARK: after a removal

  /// Returns the records of the commits behind the last one whose list names the user. None of them opens.
  func closedRecords() throws -> [NodeRecord] {
    var closed: [NodeRecord] = []
    let keys = try knownKeys()
    #expect(!keys.isEmpty)
    for zone in copy.zones {
      let later = zone.suffix(from: (zone.lastIndex { $0.names(user) } ?? -1) + 1)
      closed += try later.flatMap(\.puts).map { try copy.record($0.record) }
      for key in keys { #expect(!later.contains { KeyHistory.isOpened($0.list.fields, by: key) }) }
    }
    for record in closed { #expect(!keys.contains { RecordOpener.isOpened(record, by: $0) }) }
    return closed
  }

  /// Returns the keys of all zones and nodes that the user can open, of all generations.
  private func knownKeys() throws -> [NodeKey] {
    var keys: [NodeKey] = []
    for moment in copy.zones.joined() where moment.names(user) {
      let key = try zoneKey(moment.list)
      keys += [key] + (try KeyHistory(of: moment.list.fields, key: key)).entries.map(\.key)
    }
    let records = try copy.zones.joined().flatMap(\.puts).map { try copy.record($0.record) }
    var next = 0
    while next < keys.count {
      for child in records.flatMap({ children(of: keys[next], $0) }) where !keys.contains(child) { keys.append(child) }
      next += 1
    }
    return keys
  }

  /// Returns the keys of a record's node, if the key is that of its parent.
  private func children(of key: NodeKey, _ record: NodeRecord) -> [NodeKey] {
    let parent = ParentKeys(key, keyGen: record.fields.parentKeyGen)
    guard let opened = try? RecordOpener.open(record, parent: parent) else { return [] }
    return [opened.key] + ((try? opened.history())?.entries.map(\.key) ?? [])
  }
}

extension ZoneCommit.Fields {
  fileprivate var puts: [ZoneOperation.Put] {
    operations.compactMap { operation in if case .put(let put) = operation { put } else { nil } }
  }
}
