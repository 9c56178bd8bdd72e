import Testing
import ZDCProtocol

/// Fields and values that only a later version will define.
@Suite struct ReservedValueTests {
  private func refusalOfList(_ change: (inout ZoneACL.Fields) -> Void) -> ZDCSecurityError.Code? {
    var generator = SeededGenerator(seed: 5)
    var fields = Samples.acl(&generator)
    change(&fields)
    let list = ZoneACL(fields, sign: { _ in [UInt8](repeating: 1, count: 64) })
    return refusal { _ = try ZoneACL(list.bytes) }
  }

  @Test("K-12: rights are r, rw or rws; U L R W narrow rw, and B narrows W less")
  func rights() {
    for bits in UInt16(0)...511 {
      let (narrowing, withoutW) = (bits & 0xf8, bits & 0x40 == 0)
      let isAllowed = narrowing == 0 ? [1, 3, 7].contains(bits) : bits & 7 == 3 && !(bits & 0x80 != 0 && withoutW)
      let expected: ZDCSecurityError.Code? =
        bits > 255 ? .unsupportedVersion : isAllowed ? nil : .nonCanonicalEncoding
      #expect(refusalOfList { $0.entries[1].permissions = .init(rawValue: bits) } == expected, "\(bits)")
    }
  }

  @Test("K-13, A7: a wrap is of kind 1, a list is not linked to a parent")
  func wrapKinds() throws {
    var generator = SeededGenerator(seed: 5)
    let fields = Samples.acl(&generator)
    let bytes = ZoneACL(fields, sign: { _ in [UInt8](repeating: 1, count: 64) }).bytes
    let firstKind = try #require(bytes.firstIndex(ofField: fields.entries[0].wrapHash.bytes)) - 1
    for kind in [0, 2, 3, 255] as [UInt8] {
      var changed = bytes
      changed[firstKind] = kind
      #expect(refusal { _ = try ZoneACL(changed) } == .unsupportedVersion)
    }
    #expect(refusalOfList { $0.parentLinked = true } == .unsupportedVersion)
    #expect(refusalOfList { _ in } == nil)
  }

  @Test("B21: an entry names a generation of its member's key")
  func entryGeneration() {
    #expect(refusalOfList { $0.entries[1].encGen = 0 } == .nonCanonicalEncoding)
  }

  @Test("A6: a commit has neither size nor root of the transparency log")
  func transparency() {
    func refusalOf(_ size: UInt64, _ root: TransparencyRoot) -> ZDCSecurityError.Code? {
      var generator = SeededGenerator(seed: 6)
      var fields = Samples.commit(&generator)
      (fields.transparencySize, fields.transparencyRoot) = (size, root)
      let commit = ZoneCommit(fields, sign: { _ in [UInt8](repeating: 1, count: 64) })
      return refusal { _ = try ZoneCommit(commit.bytes) }
    }
    #expect(refusalOf(0, .zero) == nil)
    #expect(refusalOf(3, .zero) == .nonCanonicalEncoding)
    #expect(refusalOf(0, .init(1, 1, 1, 1)) == .nonCanonicalEncoding)
    #expect(refusalOf(3, .init(1, 1, 1, 1)) == .unsupportedVersion)
  }

  @Test("A7: a handle is UTF-8 and not empty, a tree claim names four commits")
  func claims() throws {
    let user = try TestUser()
    func refusalOf(_ type: UInt8, _ value: [UInt8]) -> ZDCSecurityError.Code? {
      var fields = user.nextFields(.claims)
      fields.claims = [IdentityLink.Claim(type: type, value: value)]
      return refusal { _ = try user.sign(fields) }
    }
    #expect(refusalOf(1, Array("Zoë".utf8)) == nil)
    #expect(refusalOf(1, [0xc3, 0x28]) == .nonCanonicalEncoding)
    #expect(refusalOf(1, [0xff]) == .nonCanonicalEncoding)
    #expect(refusalOf(1, []) == .nonCanonicalEncoding)
    #expect(refusalOf(2, [UInt8](repeating: 1, count: 160)) == nil)
    #expect(refusalOf(2, [UInt8](repeating: 1, count: 159)) == .nonCanonicalEncoding)
    #expect(refusalOf(2, [UInt8](repeating: 1, count: 192)) == .nonCanonicalEncoding)
  }

  @Test("B16: the root of a zone is bare, and a trunk's has no content")
  func bareRoots() {
    var generator = SeededGenerator(seed: 7)
    let sample = Samples.record(&generator, allFields: true)
    func refusalOf(root: NodeID, _ change: (inout NodeRecord.Fields) -> Void) -> ZDCSecurityError.Code? {
      var fields = sample
      (fields.node, fields.parent, fields.parentKeyGen, fields.parentWrap) = (root, .zero, 0, [])
      (fields.historyWrap, fields.nameTag, fields.isPointer) = ([], .zero, false)
      (fields.recordVersion, fields.prevRecord) = (1, .zero)
      fields.content?.dataVersion = 1
      change(&fields)
      let record = NodeRecord(fields)
      let zone = ZoneID(tree: fields.tree, root: root)
      return refusal { try RecordRules.check(record, put: .init(record), zone: zone, replaced: nil) }
    }
    let trunk = ZoneID(trunkOf: sample.tree).root
    let without: (inout NodeRecord.Fields) -> Void = { ($0.content, $0.dataAuthor) = (nil, nil) }
    #expect(refusalOf(root: trunk, without) == nil)
    #expect(refusalOf(root: trunk) { _ in } == .recordBindingMismatch)
    #expect(refusalOf(root: .n(9)) { _ in } == nil)
    let changes: [(inout NodeRecord.Fields) -> Void] = [
      { $0.parentWrap = [1] }, { $0.historyWrap = [1] }, { $0.nameTag = .init(high: 1, low: 1) },
      { $0.isPointer = true },
    ]
    for change in changes {
      for root in [trunk, .n(9)] {
        let code = refusalOf(root: root) {
          without(&$0)
          change(&$0)
        }
        #expect(code == .recordBindingMismatch)
      }
    }
  }
}

extension [UInt8] {
  /// Returns the index at which these bytes begin.
  fileprivate func firstIndex(ofField field: [UInt8]) -> Int? {
    indices.first { self[$0...].starts(with: field) }
  }
}
