import Testing
import ZDCProtocol

/// The checks of a record that need no key (PROTOCOL, "Checks of a record").
@Suite struct RecordRulesTests {
  private let zone: ZoneID
  private let fields: NodeRecord.Fields

  init() {
    var generator = SeededGenerator(seed: 1)
    var fields = Samples.record(&generator, allFields: true)
    fields.commitments = nil
    fields.prevRecord = .zero
    fields.recordVersion = 1
    fields.content?.dataVersion = 900
    self.fields = fields
    zone = ZoneID(tree: fields.tree, root: .n(1))
  }

  private func refusalOf(
    _ fields: NodeRecord.Fields, replaced: NodeRecord? = nil, knowsPrevious: Bool = true,
    put change: (inout ZoneOperation.Put) -> Void = { _ in }
  ) -> ZDCSecurityError.Code? {
    let record = NodeRecord(fields)
    var put = ZoneOperation.Put(record)
    change(&put)
    let leaf = replaced.map {
      LogNode(node: fields.node, parent: fields.parent, record: $0.hash, putSeq: 0, keyGen: 1, parentKeyGen: 1)
    }
    return refusal {
      try RecordRules.check(
        record, put: put, zone: zone, replaced: leaf, previous: knowsPrevious ? replaced : nil)
    }
  }

  private func changed(_ change: (inout NodeRecord.Fields) -> Void) -> NodeRecord.Fields {
    var copy = fields
    change(&copy)
    return copy
  }

  private func next(_ change: (inout NodeRecord.Fields) -> Void) -> NodeRecord.Fields {
    changed {
      $0.prevRecord = NodeRecord(fields).hash
      $0.recordVersion = 2
      change(&$0)
    }
  }

  @Test func aNewRecordAgreesWithItsPut() {
    #expect(refusalOf(fields) == nil)
    #expect(refusalOf(changed { $0.tree = .zero }) == .recordBindingMismatch)
    #expect(refusalOf(fields) { $0.node = .n(2) } == .recordBindingMismatch)
    #expect(refusalOf(fields) { $0.record = .zero } == .recordHashMismatch)
    #expect(refusalOf(fields) { $0.parent = .n(2) } == .recordBindingMismatch)
    #expect(refusalOf(fields) { $0.keyGen += 1 } == .recordBindingMismatch)
    #expect(refusalOf(fields) { $0.parentKeyGen += 1 } == .recordBindingMismatch)
  }

  @Test func commitmentsStandInTheRootsRecordAndThereOnly() {
    let commitments = NodeRecord.ZoneCommitments(node: .zero, content: .zero)
    #expect(refusalOf(changed { $0.commitments = commitments }) == .recordBindingMismatch)
    let root = changed {
      ($0.node, $0.commitments, $0.nameTag, $0.isPointer) = (zone.root, commitments, .zero, false)
      ($0.parentWrap, $0.historyWrap) = ([], [])
    }
    #expect(refusalOf(root) == nil)
    #expect(refusalOf(changed { $0.node = zone.root }) == .recordBindingMismatch)
  }

  @Test func aFirstRecordIsVersionOneAndReplacesNothing() {
    #expect(refusalOf(changed { $0.recordVersion = 2 }) == .recordRollback)
    #expect(refusalOf(changed { $0.prevRecord = .init(1, 1, 1, 1) }) == .recordRollback)
  }

  @Test func theNextRecordNamesTheOneBefore() {
    let previous = NodeRecord(fields)
    #expect(refusalOf(next { _ in }, replaced: previous) == nil)
    #expect(refusalOf(next { $0.prevRecord = .zero }, replaced: previous) == .recordRollback)
    #expect(refusalOf(next { $0.recordVersion = 1 }, replaced: previous) == .recordRollback)
    #expect(refusalOf(next { $0.recordVersion = 0 }, replaced: previous, knowsPrevious: false) == nil)
  }

  @Test func contentStaysOrIsNewerUnderANewBlob() throws {
    let previous = NodeRecord(fields)
    let old = try #require(fields.content)
    func content(_ change: (inout NodeRecord.Content) -> Void) -> NodeRecord.Fields {
      var copy = old
      copy.dataVersion = 1_000
      change(&copy)
      return next { $0.content = copy }
    }
    var earlier = previous.fields
    earlier.content?.dataVersion = 7
    let replaced = NodeRecord(earlier)
    func refusalOfContent(_ change: (inout NodeRecord.Content) -> Void) -> ZDCSecurityError.Code? {
      var fields = content(change)
      fields.prevRecord = replaced.hash
      return refusalOf(fields, replaced: replaced)
    }
    #expect(refusalOfContent { $0.dataVersion = 7 } == nil)
    #expect(refusalOfContent { ($0.dataVersion, $0.blobID) = (8, .zero) } == nil)
    #expect(refusalOfContent { $0.dataVersion = 8 } == .recordRollback)
    #expect(refusalOfContent { ($0.dataVersion, $0.blobID) = (7, .zero) } == .recordRollback)
    #expect(refusalOfContent { ($0.dataVersion, $0.blobID) = (6, .zero) } == .recordRollback)
    #expect(refusalOfContent { $0.contentRoot = .zero } == .recordRollback)
  }

  @Test func aRecordIsNeverOlderThanTheAcceptedOne_versionsBetweenMayBeMissing() throws {
    let old = try #require(fields.content)
    func refusalAfter(_ version: UInt64, _ content: NodeRecord.Content?) -> ZDCSecurityError.Code? {
      let record = NodeRecord(next { $0.recordVersion = 9 })
      return refusal { try RecordRules.check(record, after: RecordPin(recordVersion: version, content: content)) }
    }
    func earlier(_ change: (inout NodeRecord.Content) -> Void) -> NodeRecord.Content {
      var copy = old
      change(&copy)
      return copy
    }
    #expect(refusalAfter(3, nil) == nil)
    #expect(refusalAfter(8, old) == nil)
    #expect(refusalAfter(9, old) == .recordRollback)
    #expect(refusalAfter(10, nil) == .recordRollback)
    #expect(refusalAfter(8, earlier { ($0.dataVersion, $0.blobID) = (old.dataVersion - 1, .zero) }) == nil)
    #expect(refusalAfter(8, earlier { ($0.dataVersion, $0.blobID) = (old.dataVersion + 1, .zero) }) == .recordRollback)
    #expect(refusalAfter(8, earlier { $0.blobID = .zero }) == .recordRollback)
    // Other content came in between, and then the earlier one was restored.
    #expect(refusalAfter(8, earlier { $0.dataVersion = old.dataVersion - 1 }) == nil)
    let cut = earlier { ($0.dataVersion, $0.cipherLength) = (old.dataVersion - 1, old.cipherLength + 1) }
    #expect(refusalAfter(8, cut) == .recordRollback)
    let altered = earlier { ($0.dataVersion, $0.contentRoot) = (old.dataVersion - 1, .zero) }
    #expect(refusalAfter(8, altered) == .recordRollback)
    let without = NodeRecord(next { ($0.recordVersion, $0.content, $0.dataAuthor) = (9, nil, nil) })
    let pin = RecordPin(recordVersion: 8, content: old)
    #expect(refusal { try RecordRules.check(without, after: pin) } == .recordRollback)
  }

  @Test func writerAndCommitmentsAreThoseOfTheCommit() throws {
    var generator = SeededGenerator(seed: 2)
    let (commit, acl) = (Samples.commit(&generator), Samples.acl(&generator))
    func refusalInCommit(_ change: (inout NodeRecord.Fields) -> Void) -> ZDCSecurityError.Code? {
      let record = NodeRecord(
        changed {
          ($0.writer, $0.writerGen) = (commit.writer, commit.writerGen)
          change(&$0)
        })
      return refusal { try RecordRules.check(record, commit: commit, acl: acl) }
    }
    #expect(refusalInCommit { _ in } == nil)
    #expect(refusalInCommit { $0.writer = .zero } == .recordBindingMismatch)
    #expect(refusalInCommit { $0.writerGen += 1 } == .recordBindingMismatch)
    #expect(refusalInCommit { $0.commitments = acl.commitments } == nil)
    let others = NodeRecord.ZoneCommitments(node: acl.commitments.content, content: acl.commitments.node)
    #expect(refusalInCommit { $0.commitments = others } == .keyCommitmentMismatch)
  }
}
