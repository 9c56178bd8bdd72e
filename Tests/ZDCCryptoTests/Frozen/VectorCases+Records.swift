import ZDCProtocol

@testable import ZDCCrypto

extension VectorCases {
  // MARK: names

  /// Names with the forms that often cause bugs: composed, decomposed, reordered, singletons, Hangul, case traps.
  private static let names: [String] = [
    "a", "A", "readme.txt", "README.TXT", " leading", "trailing ", "a b", "..", ".", "a/b", "a\\b", "CON", "a:b",
    "\u{1}", "\u{7F}", "é", "e\u{301}", "É", "E\u{301}", "ü", "u\u{308}", "ß", "ẞ", "SS", "İ", "I\u{307}", "ı", "i",
    "ς", "σ", "Σ", "ΌΣΟΣ", "όσος", "Å", "Å", "A\u{30A}", "Ω", "Ω", "ﬁ", "fi", "①", "1", "가", "\u{1100}\u{1161}",
    "각", "\u{1100}\u{1161}\u{11A8}", "q\u{307}\u{323}", "q\u{323}\u{307}", "ṩ", "s\u{323}\u{307}", "ａ", "が",
    "か\u{3099}", "👩", "👨‍👩‍👧‍👦", "🏳️‍🌈", "e\u{301}\u{301}", "\u{202E}txt.exe", "\u{FEFF}bom", "日本語", "नमस्ते",
    "\u{1D15E}", "\u{2126}", "\u{212B}", "\u{F900}", "\u{958}\u{301}",
  ]

  mutating func addNames() throws {
    let key = world.home.key
    let parent = ParentKeys(key, keyGen: 1)
    let long = [String(repeating: "a", count: 1_024), String(repeating: "e\u{301}", count: 512)]
    let rows = try (Self.names + long).map { name -> VectorValue in
      let folded = try NameFolding.fold(name)
      return [
        "given": VectorValue(name.utf8), "folded": VectorValue(folded.utf8),
        "tag": VectorValue(parent.nameTag(folded).bytes),
      ]
    }
    add(
      "names", "names", "folding and tags under one folder's key",
      ["nodeKey": VectorValue(key.exportBytes()), "names": VectorValue(rows)])
    for (name, given, failure) in [
      ("empty", "", "empty"), ("null", "a\0b", "containsNull"),
      ("long", String(repeating: "a", count: 1_025), "tooLong"),
      ("long-folded", String(repeating: "é", count: 513), "tooLong"),
    ] {
      add("name-\(name)", "name", "a text that is not a name", expect: failure, ["given": VectorValue(given.utf8)])
    }
  }

  // MARK: records

  private func draft(_ name: String, _ source: inout SeededSource) throws -> RecordDraft {
    RecordDraft(
      tree: world.home.zone.tree, node: source.nodeID(), parent: world.home.zone.root, key: .random(&source),
      parentLink: .keys(world.homeKeys),
      secrets: RecordPrivate(name: try FoldedName(name), createdMs: FrozenWorld.timeMs + 5), writer: world.birth.userID,
      writerGen: 1, timeMs: FrozenWorld.timeMs + 6)
  }

  private func members(_ record: NodeRecord, key: NodeKey? = nil, gen: UInt32 = 1) -> [String: VectorValue] {
    members(record.bytes, key: key, gen: gen)
  }

  private func members(_ bytes: [UInt8], key: NodeKey? = nil, gen: UInt32 = 1) -> [String: VectorValue] {
    [
      "record": VectorValue(bytes), "parentKey": VectorValue((key ?? world.home.key).exportBytes()),
      "parentKeyGen": VectorValue(gen),
    ]
  }

  private func opened(_ record: NodeRecord, _ draft: RecordDraft) -> [String: VectorValue] {
    var result: [String: VectorValue] = [
      "recordHash": VectorValue(record.hash.bytes), "nodeKey": VectorValue(draft.key.exportBytes()),
      "name": VectorValue(draft.secrets.name), "createdMs": VectorValue(draft.secrets.createdMs),
      "private": VectorValue(draft.secrets.bytes),
    ]
    if let content = draft.secrets.content {
      result["content"] = [
        "key": VectorValue(content.key.exportBytes()), "dataSize": VectorValue(content.sizes.data),
        "metadataSize": VectorValue(content.sizes.metadata), "thumbnailSize": VectorValue(content.sizes.thumbnail),
        "thumbnailTag": VectorValue(content.thumbnailTag.bytes),
      ]
    }
    return result
  }

  mutating func addRecords() throws {
    var source = SeededSource("zdc1 vectors records")
    let folder = try draft("Fotos", &source)
    let folderRecord = try RecordSealer.seal(folder, random: &source)
    add(
      "record-folder", "record", "a folder below home",
      members(folderRecord).merging(opened(folderRecord, folder)) { $1 })
    try addFile(&source)
    try addPointer(&source)
    try addRootRecord()
    try addRecordFailures(folder, folderRecord, &source)
    try addMovedRecord()
    try addOutgoingMessage()
    try addUnknownExtra()
  }

  private mutating func addOutgoingMessage() throws {
    var source = SeededSource("zdc1 vectors outgoing message")
    let outbox = world.birth.trunks[2]
    var copy = try draft("outgoing", &source)
    (copy.tree, copy.parent) = (outbox.zone.tree, outbox.zone.root)
    copy.parentLink = .keys(ParentKeys(outbox.key, keyGen: 1))
    copy.secrets.recipients = try ["bob", "carol", "dave"].map { try FrozenMember($0).user }
    copy.secrets.served = [copy.secrets.recipients[1]]
    let device: UInt64 = 0x0102_0304_0506_0708
    copy.secrets.sendingDevice = device
    let record = try RecordSealer.seal(copy, random: &source)
    let extras: [String: VectorValue] = [
      "recipients": VectorValue(copy.secrets.recipients.map { VectorValue($0.bytes) }),
      "served": VectorValue(copy.secrets.served.map { VectorValue($0.bytes) }),
      "device": VectorValue(withUnsafeBytes(of: device.bigEndian, Array.init)),
    ]
    add(
      "record-outgoing", "record", "a message in the outbox, which one of three recipients has",
      members(record, key: outbox.key).merging(opened(record, copy)) { $1 }.merging(extras) { $1 })
    copy.secrets.sendingDevice = nil
    copy.secrets.unknownExtras = [.init(type: 4, value: pattern(7))]
    add(
      "record-outgoing-short", "record", "a sending device of 7 bytes", expect: .nonCanonicalEncoding,
      members(try RecordSealer.seal(copy, random: &source), key: outbox.key))
    copy.secrets.served = []
    copy.secrets.unknownExtras = [.init(type: 2, value: [0b1010])]
    add(
      "record-outgoing-bits", "record", "a fourth of three recipients", expect: .nonCanonicalEncoding,
      members(try RecordSealer.seal(copy, random: &source), key: outbox.key))
  }

  private mutating func addUnknownExtra() throws {
    var source = SeededSource("zdc1 vectors unknown extra")
    var later = try draft("of a later version", &source)
    later.secrets.unknownExtras = [.init(type: 8, value: []), .init(type: 200, value: pattern(70))]
    later.secrets.isRead = true
    let record = try RecordSealer.seal(later, random: &source)
    let extras = VectorValue(
      later.secrets.unknownExtras.map { ["type": VectorValue($0.type), "value": VectorValue($0.value)] })
    add(
      "record-unknown-extra", "record", "extras of types that a later version may have",
      members(record).merging(opened(record, later)) { $1 }.merging(["unknownExtras": extras]) { $1 })
    later.secrets.unknownExtras.append(.init(type: 8, value: [1]))
    add(
      "record-extra-twice", "record", "two extras of an unknown type", expect: .nonCanonicalEncoding,
      members(try RecordSealer.seal(later, random: &source)))
  }

  private mutating func addMovedRecord() throws {
    var source = SeededSource("zdc1 vectors moved record")
    var copy = try draft("copy", &source)
    copy.secrets.movedFrom = MovedNode(tree: world.birth.trunks[1].zone.tree, node: source.nodeID())
    let record = try RecordSealer.seal(copy, random: &source)
    add(
      "record-moved", "record", "a node that was copied from another tree",
      members(record).merging(opened(record, copy)) { $1 })
    copy.secrets.movedFrom = nil
    copy.secrets.unknownExtras = [.init(type: 3, value: pattern(47))]
    add(
      "record-moved-short", "record", "an origin of 47 bytes", expect: .nonCanonicalEncoding,
      members(try RecordSealer.seal(copy, random: &source)))
  }

  private mutating func addFile(_ source: inout SeededSource) throws {
    let sealer = try ContentSealer(
      metadata: pattern(20), thumbnail: pattern(30), dataSize: 1_000, padding: .padme, blobID: source.blobID(),
      random: &source)
    let content = try sealer.sealAll(pattern(1_000))
    var file = try draft("eighteen bytes.txt", &source)
    (file.secrets.content, file.content) = (content.secrets, content.content(dataVersion: 3))
    (file.recordVersion, file.prevRecord) = (4, RecordHash(7, 7, 7, 7))
    (file.keyGen, file.burnMs) = (2, FrozenWorld.timeMs + 1_000_000)
    file.dataAuthor = NodeRecord.DataAuthor(writer: UserID(w: 3), timeMs: FrozenWorld.timeMs)
    let history = try KeyHistory().adding(.init(keyGen: 1, key: .random(&source)))
    file.historyWrap = try history.seal(tree: file.tree, node: file.node, key: file.key, keyGen: 2, random: &source)
    file.secrets.recipients = [UserID(w: 1), UserID(w: 2)]
    file.secrets.served = [UserID(w: 2)]
    let record = try RecordSealer.seal(file, random: &source)
    add(
      "record-file", "record", "a file with every optional field", members(record).merging(opened(record, file)) { $1 })
    file.secrets.content?.sizes.data = 1 << 21
    add(
      "record-content-sizes", "record", "sizes that the ciphertext's length contradicts", expect: .contentHeaderInvalid,
      members(try RecordSealer.seal(file, random: &source)))
    file.secrets.content?.sizes.data = 1_000
    file.secrets.content?.thumbnailTag = .zero
    add(
      "record-content-no-tag", "record", "a thumbnail without a tag", expect: .contentHeaderInvalid,
      members(try RecordSealer.seal(file, random: &source)))
    file.secrets.content?.sizes.metadata = (16 << 20) + 1
    add(
      "record-content-limit", "record", "metadata above its limit", expect: .limitExceeded,
      members(try RecordSealer.seal(file, random: &source)))
  }

  private mutating func addPointer(_ source: inout SeededSource) throws {
    var pointer = try draft("pointer", &source)
    pointer.secrets.pointer = PointerTarget(
      owner: UserID(w: 5), zone: world.home.zone, node: source.nodeID(), genesis: world.home.commit.hash, seq: 3,
      head: CommitHash(7, 7, 7, 7))
    let record = try RecordSealer.seal(pointer, random: &source)
    add(
      "record-pointer", "record", "a pointer to another node", members(record).merging(opened(record, pointer)) { $1 })
    var fields = record.fields
    fields.isPointer = false
    add(
      "record-pointer-hidden", "record", "a pointer inside, none outside", expect: .recordBindingMismatch,
      members(NodeRecord(fields)))
  }

  private mutating func addRootRecord() throws {
    let home = world.home
    func members(_ bytes: [UInt8], key: NodeKey, commitments: NodeRecord.ZoneCommitments) -> [String: VectorValue] {
      [
        "record": VectorValue(bytes), "zoneKey": VectorValue(key.exportBytes()),
        "nkCommit": VectorValue(commitments.node.bytes), "ckCommit": VectorValue(commitments.content.bytes),
      ]
    }
    let commitments = home.key.commitments
    let success: [String: VectorValue] = [
      "recordHash": VectorValue(home.root.hash.bytes), "nodeKey": VectorValue(home.key.exportBytes()), "name": "",
      "createdMs": VectorValue(FrozenWorld.timeMs),
    ]
    add(
      "record-root", "record", "the root of home",
      members(home.root.bytes, key: home.key, commitments: commitments).merging(success) { $1 })
    var source = SeededSource("zdc1 vectors root history")
    var aged = home.root.fields
    aged.historyWrap = try KeyHistory().adding(.init(keyGen: 1, key: .random(&source)))
      .seal(tree: home.zone.tree, node: home.zone.root, key: home.key, keyGen: 2, random: &source)
    add(
      "record-root-history", "record", "old keys in the root's record, not in the list", expect: .recordBindingMismatch,
      members(aged.bytes, key: home.key, commitments: commitments))
    let other = world.birth.trunks[1].key
    add(
      "record-root-other-key", "record", "a key that is not the committed one", expect: .keyCommitmentMismatch,
      members(home.root.bytes, key: other, commitments: commitments))
    add(
      "record-root-other-list", "record", "the access list commits to another key", expect: .keyCommitmentMismatch,
      members(home.root.bytes, key: home.key, commitments: other.commitments))
    var fields = home.root.fields
    fields.nameTag = NameTag(high: 1, low: 1)
    add(
      "record-root-tagged", "record", "a trunk's root has no tag", expect: .recordBindingMismatch,
      members(fields.bytes, key: home.key, commitments: commitments))
  }

  private mutating func addRecordFailures(
    _ draft: RecordDraft, _ record: NodeRecord, _ source: inout SeededSource
  ) throws {
    func altered(_ change: (inout NodeRecord.Fields) -> Void) -> NodeRecord {
      var fields = record.fields
      change(&fields)
      return NodeRecord(fields)
    }
    let bytes = record.bytes
    add("record-trailing", "record", "a byte too many", expect: .nonCanonicalEncoding, members(bytes + [0]))
    add("record-truncated", "record", "a byte too few", expect: .nonCanonicalEncoding, members(bytes.dropLast()))
    add("record-suite", "record", "another suite", expect: .unsupportedVersion, members(bytes.flipping(bit: 40)))
    add("record-flags", "record", "an unknown flag", expect: .unsupportedVersion, members(bytes.flipping(bit: 6 * 8)))
    add(
      "record-wrong-key", "record", "another parent's key", expect: .recordAuthFailed,
      members(record, key: world.birth.trunks[1].key))
    add(
      "record-stale", "record", "made for another generation of the parent", expect: .staleKeyGeneration,
      members(record, gen: 2))
    try addOlderGenerations(draft, &source)
    add(
      "record-other-node", "record", "moved to another nodeID", expect: .recordAuthFailed,
      members(altered { $0.node = NodeID(high: 9, low: 9) }))
    add(
      "record-other-parent", "record", "moved below another parent", expect: .recordAuthFailed,
      members(altered { $0.parent = NodeID(high: 9, low: 9) }))
    add(
      "record-other-version", "record", "another record version", expect: .recordAuthFailed,
      members(altered { $0.recordVersion = 2 }))
    add(
      "record-tag", "record", "another tag than the name's", expect: .nameTagMismatch,
      members(altered { $0.nameTag = .zero }))
    add(
      "record-flip-wrap", "record", "a flipped bit in parentWrap", expect: .recordAuthFailed,
      members(altered { $0.parentWrap = $0.parentWrap.flipping(bit: 700) }))
    add(
      "record-flip-private", "record", "a flipped bit in the private part", expect: .recordAuthFailed,
      members(altered { $0.sealedPrivate = $0.sealedPrivate.flipping(bit: 800) }))
    for (name, bytes) in [("empty", []), ("null", [0x61, 0]), ("not-utf8", [0xC3, 0x28])] as [(String, [UInt8])] {
      var hostile = draft
      hostile.secrets.name = bytes
      add(
        "record-name-\(name)", "record", "a sealed name that is none", expect: .nonCanonicalEncoding,
        members(try RecordSealer.seal(hostile, random: &source)))
    }
  }

  /// Adds a record under an older generation of its parent, which the parent's history still holds.
  private mutating func addOlderGenerations(_ draft: RecordDraft, _ source: inout SeededSource) throws {
    let zone = world.home.zone
    let newest = NodeKey.random(&source)
    let history = try KeyHistory().adding(.init(keyGen: 1, key: world.home.key))
      .seal(tree: zone.tree, node: zone.root, key: newest, keyGen: 2, random: &source)
    let record = try RecordSealer.seal(draft, random: &source)
    let parent = members(record, key: newest, gen: 2).merging(["parentHistory": VectorValue(history)]) { $1 }
    add(
      "record-older-generation", "record", "read through the parent's history",
      parent.merging(opened(record, draft)) { $1 })
    var garbled = draft
    garbled.historyWrap = history
    add(
      "record-history-garbage", "record", "old keys that do not open", expect: .recordAuthFailed,
      members(try RecordSealer.seal(garbled, random: &source)))
    var long = draft
    long.secrets.name = [UInt8](repeating: 0x61, count: 1_025)
    add(
      "record-name-long", "record", "a sealed name of 1,025 bytes", expect: .limitExceeded,
      members(try RecordSealer.seal(long, random: &source)))
  }

  // MARK: histories

  mutating func addHistories() throws {
    var source = SeededSource("zdc1 vectors history")
    let (tree, node) = (world.home.zone.tree, source.nodeID())
    let keys = (0..<3).map { _ in NodeKey.random(&source) }
    let history = try KeyHistory().adding(.init(keyGen: 1, key: keys[0])).adding(.init(keyGen: 2, key: keys[1]))
    let wrap = try history.seal(tree: tree, node: node, key: keys[2], keyGen: 3, random: &source)
    func members(_ wrap: [UInt8], gen: UInt32 = 3) -> [String: VectorValue] {
      [
        "treeID": VectorValue(tree.bytes), "nodeID": VectorValue(node.bytes),
        "nodeKey": VectorValue(keys[2].exportBytes()),
        "keyGen": VectorValue(gen), "wrap": VectorValue(wrap),
      ]
    }
    let entries = VectorValue(
      history.entries.map { ["gen": VectorValue($0.keyGen), "key": VectorValue($0.key.exportBytes())] })
    add("history", "history", "two older generations", members(wrap).merging(["entries": entries]) { $1 })
    add("history-generation", "history", "under another generation", expect: .recordAuthFailed, members(wrap, gen: 4))
    add("history-flip", "history", "a flipped bit", expect: .recordAuthFailed, members(wrap.flipping(bit: 600)))
    func forged(_ generations: [UInt8]) throws -> [UInt8] {
      try Seal.seal(
        key: keys[2].historyKey, label: "old-keys", context: tree.bytes + node.bytes + [0, 0, 0, 3],
        generations.flatMap { [0, 0, 0, $0] + pattern(32) }, random: &source)
    }
    add(
      "history-order", "history", "generations that do not rise", expect: .nonCanonicalEncoding,
      members(try forged([2, 1])))
    add(
      "history-own", "history", "the newest generation among the old", expect: .nonCanonicalEncoding,
      members(try forged([3])))
    add(
      "history-limit", "history", "more than 512", expect: .limitExceeded,
      members(try forged((0..<513).map { UInt8(truncatingIfNeeded: $0) })))
  }
}
