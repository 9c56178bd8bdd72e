import Crypto
import Testing
import ZDCProtocol

@testable import ZDCCrypto

/// Opens a vector from its file alone, with the public API, and compares the result.
struct VectorOpening {
  let vector: Vector

  /// Returns "ok" or the name of the error.
  func outcome() throws -> String {
    do {
      try open()
      return "ok"
    } catch let error as ZDCSecurityError {
      return error.code.rawValue
    } catch let error as MnemonicError {
      switch error {
      case .wordCount: return "wordCount"
      case .unknownWord: return "unknownWord"
      case .checksum: return "checksum"
      }
    } catch let error as NameError {
      return "\(error)"
    } catch let error as CryptoFailure where error == .authenticationFailure {
      return "authenticationFailure"
    }
  }

  private func open() throws {
    switch try vector.string("kind") {
    case "account": try openAccount()
    case "mnemonic": _ = try AccessKey(words: try vector.string("words").split(separator: " ").map(String.init))
    case "chain": _ = try chain(expected: UserID(try vector.bytes("userID")))
    case "keyring": try openKeyring()
    case "names": try openNames()
    case "name": _ = try NameFolding.fold(String(decoding: try vector.bytes("given"), as: UTF8.self))
    case "record": try openRecord()
    case "history": try openHistory()
    case "grant": try openGrant()
    case "log": try openLog()
    case "split": try openSplit()
    case "list-edit": try openListEdit()
    case "attach": try openAttached()
    case "message": try openMessage()
    case "content": try openContent()
    case "key-file": try openKeyFile()
    case "tree": try TreeReading(vector).open()
    case "put": try openPut()
    case "long-chain": try openLongChain()
    case "device-link": try openDeviceLink()
    case "cloud-path": try openCloudPath()
    case "safety-number": try openSafetyNumber()
    case "identity-code": try openIdentityCode()
    case "mount": try openMount()
    case "remount": try openRemount()
    case let kind: Issue.record("no reader for vectors of kind \(kind)")
    }
  }

  func key<Role>(_ name: String, _: SecretKey<Role>.Type = SecretKey<Role>.self) throws -> SecretKey<Role> {
    try #require(SecretKey<Role>(try vector.bytes(name)))
  }

  func expect(_ bytes: some Sequence<UInt8>, _ name: String, in object: Vector? = nil) throws {
    #expect(try (object ?? vector).bytes(name) == Array(bytes), "\(vector.name).\(name)")
  }

  private func chain(expected: UserID?) throws -> VerifiedIdentity {
    let links = try vector.byteLists("links").map { try IdentityLink($0) }
    return try IdentityReplay.verify(links, expected: expected)
  }

  private func openAccount() throws {
    let access = try AccessKey(words: try vector.string("words").split(separator: " ").map(String.init))
    try expect(access.exportBytes(), "entropy")
    try expect(access.lookupID.bytes, "lookupID")
    try expect(access.loginKey.publicKey, "loginPub")
    try expect(access.rootKey.publicKey, "rootPub")
    try expect(access.keyringKey.exportBytes(), "keyringKey")
    let identity = try IdentityReplay.verify([try IdentityLink(try vector.bytes("genesis"))])
    try expect(identity.userID.bytes, "userID")
    #expect(try vector.string("userIDText") == identity.userID.text)
    let keyring = try Keyring.open(try vector.bytes("keyring"), key: access.keyringKey, identity: identity)
    let encryption = try #require(try keyring.decryptionKey(gen: 1))
    let directory = ChainDirectory(identity: identity)
    for trunk in try vector.objects("trunks") {
      let acl = try ZoneACL(try trunk.bytes("acl"))
      let commit = try ZoneCommit(try trunk.bytes("commit"))
      var state = MemoryZoneState()
      let head = try ZoneReplay(identities: directory).apply(commit, acl: acl, after: nil, to: &state)
      try expect(head.zone.tree.bytes, "treeID", in: trunk)
      let key = try GrantOpener.open(
        try Grant(try trunk.bytes("grant")), acl: acl, user: identity.userID, key: encryption)
      try expect(key.exportBytes(), "nodeKey", in: trunk)
      let record = try NodeRecord(try trunk.bytes("record"))
      #expect(state.leaf(record.fields.node)?.record == record.hash)
      _ = try RecordOpener.open(zoneRoot: record, key: key, commitments: acl.fields.commitments)
    }
  }

  private func openKeyring() throws {
    let keyring = try Keyring.open(
      try vector.bytes("blob"), key: try key("key"), identity: try chain(expected: nil),
      pinnedVersion: UInt64(try vector.int("pinnedVersion")))
    #expect(keyring.version == UInt64(try vector.int("version")))
    for (entry, stated) in zip(keyring.entries, try vector.objects("entries")) {
      try expect(entry.seed, "seed", in: stated)
      #expect(try stated.int("gen") == Int(entry.gen) && stated.int("status") == Int(entry.status.rawValue))
    }
    #expect(keyring.entries.count == (try vector.list("entries").count))
  }

  private func openNames() throws {
    let parent = ParentKeys(try key("nodeKey"), keyGen: 1)
    for row in try vector.objects("names") {
      let folded = try NameFolding.fold(String(decoding: try row.bytes("given"), as: UTF8.self))
      try expect(folded.utf8, "folded", in: row)
      try expect(parent.nameTag(folded).bytes, "tag", in: row)
    }
  }

  private func openRecord() throws {
    let record = try NodeRecord(try vector.bytes("record"))
    let opened: OpenedRecord
    if vector["zoneKey"] != nil {
      let commitments = NodeRecord.ZoneCommitments(
        node: try #require(KeyCommitment(try vector.bytes("nkCommit"))),
        content: try #require(KeyCommitment(try vector.bytes("ckCommit"))))
      opened = try RecordOpener.open(zoneRoot: record, key: try key("zoneKey"), commitments: commitments)
    } else {
      opened = try RecordOpener.open(record, parent: try parentKeys(of: record))
    }
    try expect(record.hash.bytes, "recordHash")
    try expect(opened.key.exportBytes(), "nodeKey")
    try expect(opened.secrets.name, "name")
    #expect(try vector.int("createdMs") == Int(opened.secrets.createdMs))
    if vector["private"] != nil { try expect(opened.secrets.bytes, "private") }
    for (extra, stated) in zip(opened.secrets.unknownExtras, try vector.optionalObjects("unknownExtras")) {
      #expect(try stated.int("type") == Int(extra.type))
      try expect(extra.value, "value", in: stated)
    }
    #expect(try opened.secrets.unknownExtras.count == vector.optionalObjects("unknownExtras").count)
    try expectMessage(opened.secrets)
  }

  private func expectMessage(_ secrets: RecordPrivate) throws {
    #expect((secrets.sendingDevice != nil) == (vector["device"] != nil))
    guard let device = secrets.sendingDevice else { return }
    try expect(withUnsafeBytes(of: device.bigEndian, Array.init), "device")
    #expect(try secrets.recipients.map(\.bytes) == vector.byteLists("recipients"))
    #expect(try secrets.served.map(\.bytes) == vector.byteLists("served"))
  }

  /// Returns the parent's keys of the generation that the record names, if the parent still has them.
  private func parentKeys(of record: NodeRecord) throws -> ParentKeys {
    let newest = ParentKeys(try key("parentKey"), keyGen: UInt32(try vector.int("parentKeyGen")))
    guard vector["parentHistory"] != nil else { return newest }
    let history = try KeyHistory(
      opening: try vector.bytes("parentHistory"), tree: record.fields.tree, node: record.fields.parent,
      key: try key("parentKey"), keyGen: newest.keyGen)
    return history.key(record.fields.parentKeyGen).map { ParentKeys($0, keyGen: record.fields.parentKeyGen) } ?? newest
  }

  private func openHistory() throws {
    let history = try KeyHistory(
      opening: try vector.bytes("wrap"), tree: try #require(TreeID(try vector.bytes("treeID"))),
      node: try #require(NodeID(try vector.bytes("nodeID"))), key: try key("nodeKey"),
      keyGen: UInt32(try vector.int("keyGen")))
    for (entry, stated) in zip(history.entries, try vector.objects("entries")) {
      try expect(entry.key.exportBytes(), "key", in: stated)
    }
    #expect(history.entries.count == (try vector.list("entries").count))
  }

  private func openGrant() throws {
    let granted = try GrantOpener.open(
      try Grant(try vector.bytes("grant")), acl: try ZoneACL(try vector.bytes("acl")),
      user: try #require(UserID(try vector.bytes("user"))), key: try DecryptionKey(seed: try key("encSeed")))
    try expect(granted.exportBytes(), "granted")
  }

  private func openLog() throws {
    try expect(try #require(try replayLog().step?.head).hash.bytes, "head")
  }

  private func directory() throws -> ChainDirectory {
    var directory = ChainDirectory(identity: try chain(expected: nil))
    if vector["others"] != nil {
      directory.others = try vector.byteLists("others").map { try IdentityReplay.verify([try IdentityLink($0)]) }
    }
    return directory
  }

  private func replayLog() throws -> (step: ZoneStep?, state: MemoryZoneState) {
    let replay = ZoneReplay(identities: try directory())
    var (step, state): (ZoneStep?, MemoryZoneState) = (nil, MemoryZoneState())
    for object in try vector.objects("commits") {
      let acl = object["acl"] == nil ? nil : try ZoneACL(try object.bytes("acl"))
      let list = object["list"] == nil ? nil : try StateList(try object.bytes("list"))
      let commit = try ZoneCommit(try object.bytes("commit"))
      try checkZone(of: commit)
      step = try replay.advance(commit, acl: acl, list: list, after: step?.head, to: &state)
    }
    return (step, state)
  }

  /// Compares a commit, also the first one, with the zone that was asked for.
  private func checkZone(of commit: ZoneCommit) throws {
    guard vector["zoneRoot"] != nil else { return }
    let asked = ZoneID(
      tree: try #require(TreeID(try vector.bytes("treeID"))), root: try #require(NodeID(try vector.bytes("zoneRoot"))))
    try require(commit.fields.zone == asked, .recordBindingMismatch)
  }

  private func openSplit() throws {
    let split = try #require(try replayLog().step?.split)
    let first = try vector.object("genesis")
    let genesis = try ZoneCommit(try first.bytes("commit"))
    try split.check(genesis)
    try expect(split.list.bytes, "list")
    var state = MemoryZoneState()
    let head = try ZoneReplay(identities: try directory()).advance(
      genesis, acl: try ZoneACL(try first.bytes("acl")), list: split.list, after: nil, to: &state
    ).head
    try expect(head.hash.bytes, "head")
  }

  private func openListEdit() throws {
    let edit = try ZoneACLEdit(try vector.bytes("edit"))
    try expect(try edit.applied(to: try ZoneACL(try vector.bytes("acl"))).hash.bytes, "aclHash")
  }

  private func openAttached() throws {
    var reader = Bundle.Reader(try vector.bytes("bundle"))
    guard case .attach(let content)? = try reader.next() else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    try expect(content.tree.bytes, "treeID")
    try expect(content.node.bytes, "nodeID")
    try expect(content.blob.bytes, "blobID")
  }

  private func openMessage() throws {
    let body = try MessageEnvelope(try vector.bytes("envelope")).open(
      user: try #require(UserID(try vector.bytes("user"))), inbox: try #require(TreeID(try vector.bytes("inbox"))),
      key: try DecryptionKey(seed: try key("encSeed")))
    let sender = try IdentityReplay.verify([try IdentityLink(try vector.bytes("senderLink"))])
    let fields = body.fields
    try require(fields.sender == sender.userID, .messageAuthFailed)
    let signKey = try #require(sender.signKeys[fields.senderGen])
    try require(body.isSigned(by: signKey), .messageAuthFailed)
    try expect(fields.payload, "payload")
    try expect(NodeID(message: fields.id, from: fields.sender).bytes, "nodeID")
    #expect(try vector.int("seq") == Int(fields.seq))
  }

  private func openKeyFile() throws {
    let passphrase = String(decoding: try vector.bytes("passphrase"), as: UTF8.self)
    try expect(try KeyFile.open(try vector.bytes("file"), passphrase: passphrase).exportBytes(), "key")
  }
}

/// Verified chains.
struct ChainDirectory: IdentityDirectory {
  let identity: VerifiedIdentity
  var others: [VerifiedIdentity] = []

  func signKey(user: UserID, generation: UInt32) -> [UInt8]? {
    (others + [identity]).first { $0.userID == user }?.signKeys[generation]
  }
}

extension VectorOpening {
  fileprivate func openContent() throws {
    let sealed = try sealContent()
    var bytes = sealed.bytes
    for step in (try? vector.objects("change")) ?? [] { try apply(step, to: &bytes) }
    let root = try #require(ContentRoot(try vector.bytes("contentRoot")))
    var content = NodeRecord.Content(
      dataVersion: 1, blobID: try #require(BlobID(try vector.bytes("blobID"))),
      cipherLength: UInt64(try vector.int("cipherLength")), contentRoot: root)
    var hashes = sealed.hashes
    if (try? vector.int("rehash")) == 1 {
      hashes = (0..<UInt64(hashes.count)).map { index in
        let range = ContentGeometry.leafRange(index, cipherLength: UInt64(bytes.count))
        return MerkleTree.leafHash(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
      }
      content.contentRoot = ContentRoot(reinterpreting: MerkleTree.root(leafHashes: hashes))
    }
    let secrets = ContentSecrets(
      key: try key("key"), sizes: sealed.sizes,
      thumbnailTag: try #require(ThumbnailTag(try vector.bytes("thumbnailTag"))))
    let reference = try ContentReference(content: content, secrets: secrets)
    let opener = ContentOpener(reference, leaves: try ContentLeaves(hashes, for: reference))
    var data: [UInt8] = []
    try opener.push(bytes) { section, part in if section == .data { data += part } }
    try opener.finish()
    #expect(data == pattern(Int(sealed.sizes.data)))
  }

  /// Seals the described content again from key, blobID and salt, with the one-shot SEAL.
  private func sealContent() throws -> (bytes: [UInt8], hashes: [MerkleHash], sizes: ContentSizes) {
    let (metadata, thumbnail) = (pattern(try vector.int("metadataSize")), pattern(try vector.int("thumbnailSize")))
    let data = pattern(try vector.int("dataSize"))
    let sizes = ContentSizes(
      metadata: UInt32(metadata.count), thumbnail: UInt32(thumbnail.count), data: UInt64(data.count))
    let layout = try ContentLayout(sizes: sizes, padding: ContentVector.policy(try vector.string("padding")))
    let header = ContentHeader(
      sizes: sizes, paddingSize: layout.paddingSize, thumbnailTag: ContentHeader.tag(ofThumbnail: thumbnail))
    let plaintext =
      header.bytes + metadata + thumbnail + data + [UInt8](repeating: 0, count: Int(layout.paddingSize))
    let key: ContentKey = try key(vector["sealKey"] == nil ? "key" : "sealKey")
    var salt = FixedSource(rest: try vector.bytes("salt"))
    let blobID = try vector.bytes(vector["sealBlobID"] == nil ? "blobID" : "sealBlobID")
    let bytes = try Seal.seal(key: key, label: "content", context: blobID, plaintext, random: &salt)
    #expect(bytes.count == (try vector.int("cipherLength")))
    try expect(Array(SHA256.hash(data: bytes)), "cipherSHA256")
    let hashes = (0..<layout.leafCount).map { index in
      let range = ContentGeometry.leafRange(index, cipherLength: layout.cipherLength)
      return MerkleTree.leafHash(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    }
    try expect(Array(SHA256.hash(data: hashes.flatMap(\.bytes))), "leavesSHA256")
    #expect(hashes.count == (try vector.int("leafCount")))
    return (bytes, hashes, sizes)
  }

  private func apply(_ step: Vector, to bytes: inout [UInt8]) throws {
    if let bit = try? step.int("flip") { bytes = bytes.flipping(bit: bit) }
    if let count = try? step.int("truncate") { bytes = Array(bytes.prefix(count)) }
    if let tail = try? step.bytes("append") { bytes += tail }
    if let first = try? step.int("swap") {
      let start = ContentGeometry.prefixBytes + first * ContentGeometry.sealedChunkBytes
      let one = Array(bytes[start..<start + ContentGeometry.sealedChunkBytes])
      bytes.removeSubrange(start..<start + one.count)
      bytes.insert(contentsOf: one, at: start + one.count)
    }
  }
}

struct FixedSource: RandomSource {
  var rest: [UInt8]

  mutating func bytes(_ count: Int) -> [UInt8] {
    defer { rest.removeFirst(count) }
    return Array(rest.prefix(count))
  }
}
