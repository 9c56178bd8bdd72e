import Testing
import ZDCProtocol

/// One rule of the formats per test, each broken alone.
@Suite struct CodecRuleTests {
  private func changed(_ bytes: [UInt8], at offset: Int, to value: UInt8) -> [UInt8] {
    var bytes = bytes
    bytes[offset] = value
    return bytes
  }

  @Test(arguments: Codec.all.filter(\.hasPreamble))
  func otherMagicVersionAndSuiteAreRefused(codec: Codec) {
    var generator = SeededGenerator(seed: 1)
    let bytes = codec.sample(&generator)
    #expect(refusal { _ = try codec.recode(changed(bytes, at: 0, to: 0x7a)) } == .nonCanonicalEncoding)
    for offset in [4, 5] {
      for value in [UInt8(0), 2, 255] {
        #expect(refusal { _ = try codec.recode(changed(bytes, at: offset, to: value)) } == .unsupportedVersion)
      }
    }
  }

  @Test(
    arguments: zip(
      Codec.all.map(\.testDescription),
      [
        Limits.linkBytes, Limits.recordBytes, Limits.recordBytes, Limits.commitBytes, Limits.aclBytes,
        Limits.grantBytes,
      ]))
  func oneByteMoreThanTheLimitIsRefusedUnread(name: String, limit: Int) throws {
    let codec = try #require(Codec.all.first { $0.testDescription == name })
    #expect(refusal { _ = try codec.recode([UInt8](repeating: 0, count: limit + 1)) } == .limitExceeded)
    #expect(refusal { _ = try codec.recode([UInt8](repeating: 0, count: limit)) } == .nonCanonicalEncoding)
  }

  // MARK: NodeRecord

  @Test func unknownRecordFlagsAreAnotherVersion() {
    var generator = SeededGenerator(seed: 2)
    let bytes = Samples.record(&generator, allFields: true).bytes
    for (offset, value) in [(6, UInt8(1)), (7, 63), (7, 159)] {
      #expect(refusal { _ = try NodeRecord(changed(bytes, at: offset, to: value)) } == .unsupportedVersion)
    }
  }

  @Test func anAuthorOfContentThatIsNotThereIsRefused() {
    var generator = SeededGenerator(seed: 3)
    let bytes = Samples.record(&generator, allFields: true).bytes
    #expect(refusal { _ = try NodeRecord(changed(bytes, at: 7, to: 16)) } == .nonCanonicalEncoding)
  }

  @Test(
    arguments: [
      (UInt64(0), ZDCSecurityError.Code.nonCanonicalEncoding), (135, .nonCanonicalEncoding), (136, nil),
      (Limits.contentCipherBytes, nil), (Limits.contentCipherBytes + 1, .limitExceeded), (.max, .limitExceeded),
    ] as [(UInt64, ZDCSecurityError.Code?)])
  func contentLengthHasBothBorders(length: UInt64, expected: ZDCSecurityError.Code?) {
    var generator = SeededGenerator(seed: 4)
    var fields = Samples.record(&generator, allFields: true)
    fields.content?.cipherLength = length
    #expect(refusal { _ = try NodeRecord(fields.bytes) } == expected)
  }

  @Test func aPrivatePartAboveItsLimitIsRefused() {
    var generator = SeededGenerator(seed: 5)
    var fields = Samples.record(&generator, allFields: true)
    fields.sealedPrivate = generator.bytes(Limits.recordPrivateBytes)
    #expect(refusal { _ = try NodeRecord(fields.bytes) } == nil)
    fields.sealedPrivate.append(0)
    #expect(refusal { _ = try NodeRecord(fields.bytes) } == .limitExceeded)
  }

  // MARK: ZoneCommit

  private func recommit(_ change: (inout ZoneCommit.Fields) -> Void) -> ZDCSecurityError.Code? {
    var generator = SeededGenerator(seed: 6)
    var fields = Samples.commit(&generator)
    change(&fields)
    return refusal { _ = try ZoneCommit(fields.unsignedBytes + [UInt8](repeating: 0, count: 64)) }
  }

  @Test func aCommitHasOneToAThousandOperations() {
    #expect(recommit { $0.operations = [] } == .nonCanonicalEncoding)
    #expect(recommit { $0.operations = Array(repeating: $0.operations[0], count: 1_000) } == nil)
    #expect(recommit { $0.operations = Array(repeating: $0.operations[0], count: 1_001) } == .limitExceeded)
  }

  @Test(arguments: [UInt8(0), 5, 6, 7, 9, 11, 255]) func anOperationOfAnUnknownKindIsRefused(kind: UInt8) {
    var generator = SeededGenerator(seed: 7)
    let bytes = ZoneCommit(Samples.commit(&generator), sign: { _ in generator.bytes(64) }).bytes
    // The first operation follows 212 fixed bytes.
    #expect(bytes[212] == 1)
    #expect(refusal { _ = try ZoneCommit(changed(bytes, at: 212, to: kind)) } == .nonCanonicalEncoding)
  }

  // MARK: ZoneACL

  private func reacl(_ change: (inout ZoneACL.Fields) -> Void) -> ZDCSecurityError.Code? {
    var generator = SeededGenerator(seed: 8)
    var fields = Samples.acl(&generator)
    change(&fields)
    return refusal { _ = try ZoneACL(fields.unsignedBytes + [UInt8](repeating: 0, count: 64)) }
  }

  @Test func entriesAreSortedAndEachUserIsThereOnce() {
    #expect(reacl { $0.entries.swapAt(0, 1) } == .nonCanonicalEncoding)
    #expect(reacl { $0.entries[1].user = $0.entries[0].user } == .nonCanonicalEncoding)
    #expect(reacl { $0.entries = [] } == nil)
  }

  @Test func anotherMinimumProtocolIsAnotherVersion() {
    #expect(reacl { $0.minProtocol = 0 } == .unsupportedVersion)
    #expect(reacl { $0.minProtocol = 2 } == .unsupportedVersion)
  }

  @Test func moreThan1024EntriesAreRefused() {
    func entries(_ count: Int) -> [ZoneACL.Entry] {
      (1...count).map {
        ZoneACL.Entry(
          user: UserID(0, 0, 0, UInt64($0)), permissions: .read, encGen: 1, wrapKind: .nodeKey, wrapHash: .zero)
      }
    }
    #expect(reacl { $0.entries = entries(1_024) } == nil)
    #expect(reacl { $0.entries = entries(1_025) } == .limitExceeded)
  }

  @Test(
    arguments: [
      ("com.example.app", true), ("12345678", true), ("1234567", false), (String(repeating: "a", count: 64), true),
      (String(repeating: "a", count: 65), false), (".example", false), ("has space", false), ("häuser-app", false),
      ("a-b_c.D9", true), ("slash/app", false), ("", false),
    ] as [(String, Bool)])
  func theNameOfATreeHasRules(name: String, isValid: Bool) {
    #expect(AppTreeID.isValid(name) == isValid)
    #expect((reacl { $0.appTreeID = name } == nil) == isValid)
  }

  @Test func boolsAndTrunksHaveOnlyTheirValues() {
    var generator = SeededGenerator(seed: 9)
    let fields = Samples.acl(&generator)
    let bytes = fields.unsignedBytes + generator.bytes(64)
    let trunk = 86
    let parentLinked = trunk + 1 + 2 + fields.appTreeID.utf8.count + 4 + 32
    for (offset, valid) in [(trunk, UInt8(1)), (parentLinked, 0)] {
      #expect(bytes[offset] == valid)
      #expect(refusal { _ = try ZoneACL(changed(bytes, at: offset, to: 9)) } == .nonCanonicalEncoding)
    }
  }

  // MARK: IdentityLink

  @Test func linkKindsCompromiseBitsAndClaimTypesHaveOnlyTheirValues() {
    var generator = SeededGenerator(seed: 10)
    let bytes = Samples.link(&generator)
    for (offset, value) in [(6, UInt8(5)), (1_371, 4), (1_414, 0), (1_414, 3)] {
      #expect(refusal { _ = try IdentityLink(changed(bytes, at: offset, to: value)) } == .nonCanonicalEncoding)
    }
  }

  @Test func aTreeClaimIsRecognisedByItsName() {
    let claim = IdentityLink.Claim.tree(appTreeID: "com.example.app", genesisCommits: [.zero, .zero, .zero, .zero])
    #expect(claim.type == 2)
    #expect(claim.value.count == 32 + 4 * 32)
    #expect(claim.value.starts(with: TreeID(labelledHash: "tree-claim", Array("com.example.app".utf8)).bytes))
  }
}
