import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct RecordTests {
  private let world: World

  init() throws { world = try World("records") }

  private func open(_ record: NodeRecord, _ parent: ParentKeys? = nil) throws -> ZDCSecurityError.Code? {
    try securityCode { _ = try RecordOpener.open(record, parent: parent ?? world.homeKeys) }
  }

  /// Returns the record with other public fields, as a server without keys could make it.
  private func altered(_ record: NodeRecord, _ change: (inout NodeRecord.Fields) -> Void) -> NodeRecord {
    var fields = record.fields
    change(&fields)
    return NodeRecord(fields)
  }

  @Test func aFolderComesBack() throws {
    let draft = try world.draft("Fotos 2026")
    let record = try RecordSealer.seal(draft)
    let opened = try RecordOpener.open(try NodeRecord(record.bytes), parent: world.homeKeys)
    #expect(opened.name == "Fotos 2026")
    #expect(opened.key == draft.key)
    #expect(opened.secrets == draft.secrets)
    #expect(opened.layout == nil && opened.contentReference == nil)
    #expect(record.fields.nameTag == world.homeKeys.nameTag(try FoldedName("Fotos 2026")))
    #expect(record.fields.parentWrap.count == 104)
  }

  @Test func aFileCarriesWhatItsContentNeeds() throws {
    let content = try ContentSealer.sealSmall(metadata: [1], thumbnail: [2, 2], data: pattern(100))
    let record = try RecordSealer.seal(try world.draft("eighteen bytes.txt", content: content))
    #expect(record.bytes.count < 620)
    let opened = try RecordOpener.open(record, parent: world.homeKeys)
    let reference = try #require(opened.contentReference)
    let read = try ContentOpener.openSmall(content.bytes, reference)
    #expect(read == OpenedContent(metadata: [1], thumbnail: [2, 2], data: pattern(100)))
  }

  @Test func everyFlippedBitIsAnErrorOrChangesOnlyWhatTheHashCovers() throws {
    let record = try RecordSealer.seal(try world.draft("name"))
    let opened = try RecordOpener.open(record, parent: world.homeKeys)
    var survived = 0
    for bit in 0..<record.bytes.count * 8 {
      guard let other = try? NodeRecord(record.bytes.flipping(bit: bit)) else { continue }
      #expect(other.hash != record.hash)
      guard let reopened = try? RecordOpener.open(other, parent: world.homeKeys) else { continue }
      // No seal covers prevRecord, the zone's commitments, writer and times: the signed commit's hash does.
      #expect(reopened.secrets == opened.secrets && reopened.key == opened.key)
      survived += 1
    }
    #expect(survived > 0)
  }

  @Test func fieldsThatAreBoundInsideASealCannotBeChanged() throws {
    let record = try RecordSealer.seal(try world.draft("name"))
    #expect(try open(altered(record) { $0.tree = .zero }) == .recordAuthFailed)
    #expect(try open(altered(record) { $0.node = .zero }) == .recordAuthFailed)
    #expect(try open(altered(record) { $0.keyGen = 2 }) == .recordAuthFailed)
    #expect(try open(altered(record) { $0.parent = NodeID(high: 1, low: 1) }) == .recordAuthFailed)
    #expect(try open(altered(record) { $0.recordVersion = 2 }) == .recordAuthFailed)
    #expect(try open(altered(record) { $0.parentKeyGen = 2 }) == .staleKeyGeneration)
    #expect(try open(altered(record) { $0.nameTag = .zero }) == .nameTagMismatch)
    #expect(try open(altered(record) { $0.isPointer = true }) == .recordBindingMismatch)
    #expect(try open(altered(record) { $0.parentWrap = [] }) == .recordAuthFailed)
    #expect(try open(altered(record) { $0.sealedPrivate = [] }) == .recordAuthFailed)
  }

  @Test func siblingsCannotSwapTheirPrivateParts() throws {
    let one = try RecordSealer.seal(try world.draft("one"))
    let two = try RecordSealer.seal(try world.draft("two"))
    #expect(try open(altered(one) { $0.sealedPrivate = two.fields.sealedPrivate }) == .recordAuthFailed)
    let both = altered(one) {
      $0.sealedPrivate = two.fields.sealedPrivate
      $0.nameTag = two.fields.nameTag
      $0.parentWrap = two.fields.parentWrap
    }
    #expect(try open(both) == .recordAuthFailed)
  }

  @Test func anotherParentOrGenerationOpensNothing() throws {
    let record = try RecordSealer.seal(try world.draft("name"))
    #expect(try open(record, ParentKeys(.random(), keyGen: 1)) == .recordAuthFailed)
    #expect(try open(record, ParentKeys(world.home.key, keyGen: 2)) == .staleKeyGeneration)
  }

  @Test func aTagThatIsNotTheNamesIsFound() throws {
    var draft = try world.draft("name")
    let keys = world.homeKeys
    var source = SystemRandomSource()
    let wrap = try keys.wrap(draft.key, tree: draft.tree, node: draft.node, keyGen: 1, random: &source)
    draft.parentLink = .carried(keyGen: 1, wrap: wrap, nameTag: keys.nameTag(try FoldedName("other")))
    #expect(try open(try RecordSealer.seal(draft)) == .nameTagMismatch)
    draft.parentLink = .carried(keyGen: 1, wrap: wrap, nameTag: keys.nameTag(try FoldedName("name")))
    #expect(try open(try RecordSealer.seal(draft)) == nil)
  }

  @Test func readersTakeStoredNamesAsTheyAre() throws {
    // A writer that does not fold creates a valid record with a different name, not an error.
    var draft = try world.draft("x")
    draft.secrets.name = Array("e\u{301}".utf8)
    let opened = try RecordOpener.open(try RecordSealer.seal(draft), parent: world.homeKeys)
    #expect(Array(opened.name.utf8) == [0x65, 0xCC, 0x81])
  }

  @Test func namesThatCannotBeShownAreRefused() throws {
    for name in [[], [0], [0x61, 0, 0x62], [0xFF], [0xC3]] as [[UInt8]] {
      var draft = try world.draft("x")
      draft.secrets.name = name
      #expect(try open(try RecordSealer.seal(draft)) == .nonCanonicalEncoding)
    }
    var long = try world.draft("x")
    long.secrets.name = pattern(1_025).map { $0 | 1 }
    #expect(try open(try RecordSealer.seal(long)) == .limitExceeded)
  }

  @Test func aZoneRootOpensWithTheKeyOfItsAccessList() throws {
    let home = world.home
    let commitments = home.acl.fields.commitments
    #expect(try RecordOpener.open(zoneRoot: home.root, key: home.key, commitments: commitments).name == "")
    let other = NodeKey.random()
    let cases: [() throws -> Void] = [
      { _ = try RecordOpener.open(zoneRoot: home.root, key: other, commitments: commitments) },
      { _ = try RecordOpener.open(zoneRoot: home.root, key: other, commitments: other.commitments) },
      { _ = try RecordOpener.open(zoneRoot: home.root, key: home.key, commitments: other.commitments) },
    ]
    for attempt in cases { #expect(try securityCode(attempt) == .keyCommitmentMismatch) }
  }

  @Test func aTrunkRootHasNeitherNameNorTag() throws {
    var draft = RecordDraft(
      tree: world.home.zone.tree, node: world.home.zone.root, parent: .zero, key: world.home.key, parentLink: .none,
      secrets: RecordPrivate(name: try FoldedName("named"), createdMs: 1), writer: world.birth.userID, writerGen: 1,
      timeMs: 1)
    draft.isZoneRoot = true
    let named = try RecordSealer.seal(draft)
    let commitments = world.home.key.commitments
    let code = try securityCode {
      _ = try RecordOpener.open(zoneRoot: named, key: world.home.key, commitments: commitments)
    }
    #expect(code == .recordBindingMismatch)
  }

  @Test func aNestedZoneRootOpensFromBothSides() throws {
    var draft = try world.draft("shared")
    draft.isZoneRoot = true
    let record = try RecordSealer.seal(draft)
    let commitments = draft.key.commitments
    let opened = try RecordOpener.open(record, parent: world.homeKeys)
    #expect(opened.key == draft.key)
    #expect(try RecordOpener.open(zoneRoot: record, key: draft.key, commitments: commitments).name == "shared")
    let both = try RecordOpener.open(
      zoneRoot: record, key: draft.key, commitments: commitments, parent: world.homeKeys)
    #expect(both.name == "shared")
    let lying = altered(record) { $0.commitments = NodeKey.random().commitments }
    #expect(try open(lying) == .keyCommitmentMismatch)
  }

  @Test func aPointerSaysSoInsideAndOutside() throws {
    var draft = try world.draft("pointer")
    draft.secrets.pointer = PointerTarget(
      owner: UserID(w: 1), zone: world.home.zone, node: .random(), genesis: CommitHash(1, 2, 3, 4), seq: 5,
      head: CommitHash(6, 7, 8, 9))
    let record = try RecordSealer.seal(draft)
    #expect(record.fields.isPointer)
    #expect(try RecordOpener.open(record, parent: world.homeKeys).secrets.pointer == draft.secrets.pointer)
    #expect(try open(altered(record) { $0.isPointer = false }) == .recordBindingMismatch)
    let content = try ContentSealer.sealSmall(data: [1])
    draft.secrets.content = content.secrets
    draft.content = content.content(dataVersion: 1)
    #expect(try open(try RecordSealer.seal(draft)) == .recordBindingMismatch)
  }

  @Test func contentFieldsThatContradictEachOtherAreFound() throws {
    let content = try ContentSealer.sealSmall(metadata: [1], thumbnail: [2], data: pattern(100))
    func code(_ change: (inout RecordDraft) -> Void) throws -> ZDCSecurityError.Code? {
      var draft = try world.draft("file", content: content)
      change(&draft)
      return try open(try RecordSealer.seal(draft))
    }
    #expect(try code { _ in } == nil)
    #expect(try code { $0.secrets.content?.sizes.data = 1 << 20 } == .contentHeaderInvalid)
    #expect(try code { $0.secrets.content?.sizes.data = .max } == .limitExceeded)
    #expect(try code { $0.secrets.content?.sizes.metadata = .max } == .limitExceeded)
    #expect(try code { $0.secrets.content?.thumbnailTag = .zero } == .contentHeaderInvalid)
    #expect(try code { $0.secrets.content?.sizes.thumbnail = 0 } == .contentHeaderInvalid)
    #expect(try code { $0.content?.cipherLength = UInt64(16_400 + 56 + 10) } == .contentHeaderInvalid)
    let record = try RecordSealer.seal(try world.draft("file", content: content))
    #expect(try open(altered(record) { $0.content = nil }) == .nonCanonicalEncoding)
  }

  @Test func draftsThatContradictThemselvesAreNotSealed() throws {
    let content = try ContentSealer.sealSmall(data: [1])
    var noSecrets = try world.draft("x")
    noSecrets.content = content.content(dataVersion: 1)
    #expect(throws: CryptoFailure.invalidParameter) { try RecordSealer.seal(noSecrets) }
    var noFields = try world.draft("x")
    noFields.secrets.content = content.secrets
    #expect(throws: CryptoFailure.invalidParameter) { try RecordSealer.seal(noFields) }
    var author = try world.draft("x")
    author.dataAuthor = NodeRecord.DataAuthor(writer: .zero, timeMs: 1)
    #expect(throws: CryptoFailure.invalidParameter) { try RecordSealer.seal(author) }
    var crowded = try world.draft("x")
    crowded.secrets.recipients = (0..<1_300).map { UserID(w: $0 + 1) }
    #expect(try securityCode { _ = try RecordSealer.seal(crowded) } == .limitExceeded)
  }

  // MARK: private part

  @Test func thePrivatePartSurvivesAndHidesTheNamesLength() throws {
    var secrets = RecordPrivate(
      name: try FoldedName("n"), createdMs: 7,
      pointer: PointerTarget(
        owner: .zero, zone: world.home.zone, node: .zero, genesis: CommitHash(1, 1, 1, 1), seq: .max, head: .zero),
      content: ContentSecrets(
        key: .random(), sizes: ContentSizes(metadata: 1, thumbnail: 2, data: 3), thumbnailTag: .random()),
      recipients: [UserID(w: 1), UserID(w: 2)], served: [UserID(w: 2)])
    secrets.movedFrom = MovedNode(tree: world.home.zone.tree, node: .random())
    secrets.sendingDevice = 0x0102_0304_0506_0708
    secrets.received = ReceivedMessage(sender: UserID(w: 3), senderGen: 2, device: 9, seq: 4, id: .random())
    secrets.profile = try UserProfile(name: "Ann", avatar: pattern(Limits.profileAvatarBytes))
    secrets.isRead = true
    secrets.unknownExtras = [.init(type: 8, value: [1])]
    #expect(secrets.bytes.count % 32 == 0)
    #expect(try RecordPrivate(secrets.bytes, hasContent: true) == secrets)
    let short = RecordPrivate(name: try FoldedName("a"), createdMs: 0).bytes
    #expect(short.count == RecordPrivate(name: try FoldedName("abcdefgh"), createdMs: 0).bytes.count)
  }

  @Test func everyOtherFormOfThePrivatePartIsRefused() throws {
    let secrets = RecordPrivate(name: try FoldedName("name"), createdMs: 7, recipients: [UserID(w: 1)])
    let bytes = secrets.bytes
    func code(_ bytes: [UInt8], hasContent: Bool = false) throws -> ZDCSecurityError.Code? {
      try securityCode { _ = try RecordPrivate(bytes, hasContent: hasContent) }
    }
    #expect(try code(bytes) == nil)
    #expect(try code([]) == .nonCanonicalEncoding)
    #expect(try code(bytes + [0]) == .nonCanonicalEncoding)
    #expect(try code(bytes + [UInt8](repeating: 0, count: 32)) == .nonCanonicalEncoding)
    #expect(try code(bytes.dropLast() + [1]) == .nonCanonicalEncoding)
    #expect(try code([2] + bytes.dropFirst()) == .unsupportedVersion)
    #expect(try code(bytes, hasContent: true) == .nonCanonicalEncoding)
    #expect(try code([UInt8](repeating: 0, count: 32 << 11)) == .limitExceeded)
    for bit in 0..<bytes.count * 8 {
      let flipped = bytes.flipping(bit: bit)
      if let other = try? RecordPrivate(flipped, hasContent: false) { #expect(other.bytes == flipped) }
    }
  }

  @Test func unknownExtrasAreKept_andRepeatedOnesRefused() throws {
    func private_(extras: [(UInt8, [UInt8])]) -> [UInt8] {
      var out = ByteWriter()
      out.append(UInt8(1))
      out.append16([0x61])
      out.append(UInt64(0))
      out.append(false)
      out.append(UInt16(extras.count))
      for (type, value) in extras {
        out.append(type)
        out.append16(value)
      }
      out.append(contentsOf: [UInt8](repeating: 0, count: (32 - out.bytes.count % 32) % 32))
      return out.bytes
    }
    func code(_ extras: [(UInt8, [UInt8])]) throws -> ZDCSecurityError.Code? {
      try securityCode { _ = try RecordPrivate(private_(extras: extras), hasContent: false) }
    }
    #expect(try code([(1, pattern(32)), (2, [1])]) == nil)
    #expect(try code([(1, pattern(288)), (2, [0, 1])]) == nil)
    for bits: [UInt8] in [[], [0], [2], [3], [1, 0], [0, 0]] {
      #expect(try code([(1, pattern(32)), (2, bits)]) == .nonCanonicalEncoding)
    }
    #expect(try code([(2, [1])]) == .nonCanonicalEncoding)
    #expect(try code([(2, [])]) == .nonCanonicalEncoding)
    #expect(try code([(2, [1]), (1, pattern(32))]) == .nonCanonicalEncoding)
    #expect(try code([(7, [1])]) == nil)
    for value: [UInt8] in [[], [0], [2], [1, 1]] { #expect(try code([(7, value)]) == .nonCanonicalEncoding) }
    #expect(try code([(1, pattern(32)), (1, pattern(32))]) == .nonCanonicalEncoding)
    #expect(try code([(0, pattern(32))]) == .nonCanonicalEncoding)
    let unknown = private_(extras: [(1, pattern(32)), (8, pattern(5)), (200, [])])
    let opened = try RecordPrivate(unknown, hasContent: false)
    #expect(opened.unknownExtras.map(\.type) == [8, 200] && opened.bytes == unknown)
    #expect(try code([(8, pattern(5)), (2, pattern(32))]) == .nonCanonicalEncoding)
    let profile = try UserProfile(name: "Ann", avatar: [1, 2]).bytes
    #expect(try code([(5, pattern(68)), (6, profile)]) == nil)
    #expect(try code([(6, profile + [0])]) == .nonCanonicalEncoding)
    #expect(try code([(6, [])]) == .nonCanonicalEncoding)
    #expect(try code([(6, [2] + profile.dropFirst())]) == .unsupportedVersion)
    #expect(try code([(4, pattern(8)), (5, pattern(68))]) == nil)
    #expect(try code([(4, pattern(7))]) == .nonCanonicalEncoding)
    #expect(try code([(5, pattern(67))]) == .nonCanonicalEncoding)
    #expect(try code([(5, pattern(69))]) == .nonCanonicalEncoding)
    #expect(try code([(3, pattern(48))]) == nil)
    #expect(try code([(3, pattern(47))]) == .nonCanonicalEncoding)
    #expect(try code([(3, pattern(80))]) == .nonCanonicalEncoding)
    #expect(try code([(1, pattern(31))]) == .nonCanonicalEncoding)
    #expect(try code([(1, [])]) == .nonCanonicalEncoding)
  }

  // MARK: history

  @Test func rotationKeepsOldKeysReadable() throws {
    let keys = (0..<4).map { _ in NodeKey.random() }
    var history = KeyHistory()
    for (index, key) in keys.dropLast().enumerated() {
      history = try history.adding(.init(keyGen: UInt32(index + 1), key: key))
    }
    var draft = try world.draft("rotated", key: keys[3])
    draft.keyGen = 4
    draft.historyWrap = try history.seal(tree: draft.tree, node: draft.node, key: keys[3], keyGen: 4)
    #expect(draft.historyWrap.count == 72 + 36 * 3)
    let opened = try RecordOpener.open(try RecordSealer.seal(draft), parent: world.homeKeys)
    #expect(try opened.history() == history)
    #expect(try opened.history().key(2) == keys[1])
    #expect(try opened.history().key(4) == nil)
    #expect(opened.parentKeys.keyGen == 4)
    draft.historyWrap[80] ^= 1
    let garbled = try RecordSealer.seal(draft)
    #expect(try securityCode { _ = try RecordOpener.open(garbled, parent: world.homeKeys) } == .recordAuthFailed)
    draft.historyWrap[80] ^= 1
    let moved = try securityCode {
      _ = try KeyHistory(opening: draft.historyWrap, tree: draft.tree, node: .random(), key: keys[3], keyGen: 4)
    }
    #expect(moved == .recordAuthFailed)
  }

  @Test func historyHasALimitAndAnOrder() throws {
    var history = KeyHistory()
    for gen in 1...512 { history = try history.adding(.init(keyGen: UInt32(gen), key: .random())) }
    #expect(try securityCode { _ = try history.adding(.init(keyGen: 513, key: .random())) } == .limitExceeded)
    let full = try history.seal(tree: .zero, node: .zero, key: .random(), keyGen: 513)
    #expect(full.count == Limits.historyWrapBytes)
    let one = try KeyHistory().adding(.init(keyGen: 5, key: .random()))
    #expect(try securityCode { _ = try one.adding(.init(keyGen: 5, key: .random())) } == .staleKeyGeneration)
    #expect(try KeyHistory().seal(tree: .zero, node: .zero, key: .random(), keyGen: 1).isEmpty)
  }

  @Test func forgedHistoriesAreRefused() throws {
    let key = NodeKey.random()
    func code(_ plaintext: [UInt8]) throws -> ZDCSecurityError.Code? {
      let context = TreeID.zero.bytes + NodeID.zero.bytes + [0, 0, 0, 3]
      let wrap = try Seal.seal(key: key.historyKey, label: "old-keys", context: context, plaintext)
      return try securityCode { _ = try KeyHistory(opening: wrap, tree: .zero, node: .zero, key: key, keyGen: 3) }
    }
    let entry = { (gen: UInt8) -> [UInt8] in [0, 0, 0, gen] + pattern(32) }
    #expect(try code(entry(1) + entry(2)) == nil)
    #expect(try code(entry(2) + entry(1)) == .nonCanonicalEncoding)
    #expect(try code(entry(3)) == .nonCanonicalEncoding)
    #expect(try code(entry(0)) == .nonCanonicalEncoding)
    #expect(try code([]) == .nonCanonicalEncoding)
    #expect(try code(entry(1) + [0]) == .nonCanonicalEncoding)
    #expect(try code([UInt8](repeating: 1, count: 36 * 513)) == .limitExceeded)
  }
}
