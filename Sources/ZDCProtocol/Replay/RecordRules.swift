/// The checks of a record that need no key (PROTOCOL 3.6), in order. Class 1: an honest server has already refused what
/// fails here.
public enum RecordRules {
  /// Checks a record against the put that names it and the zone's commit.
  ///
  /// - Parameters:
  ///   - previous: the node's record before this put, if the checker has it; its hash must be the one that the log
  ///     replaced.
  ///   - replaced: the log's leaf before this put, nil for a new node.
  public static func check(
    _ record: NodeRecord, put: ZoneOperation.Put, zone: ZoneID, replaced: ZoneLeaf?, previous: NodeRecord? = nil
  ) throws(ZDCSecurityError) {
    let fields = record.fields
    try require(fields.tree == zone.tree && fields.node == put.node, .recordBindingMismatch, node: put.node)
    try require(record.hash == put.record, .recordHashMismatch, node: put.node)
    let agrees =
      fields.parent == put.parent && fields.keyGen == put.keyGen && fields.parentKeyGen == put.parentKeyGen
    try require(agrees, .recordBindingMismatch, node: put.node)
    try require(fields.prevRecord == replaced?.record ?? .zero, .recordRollback, node: put.node)
    try require((put.node == zone.root) == (fields.commitments != nil), .recordBindingMismatch, node: put.node)
    if put.node == zone.root { try checkRoot(fields, of: zone) }
    try checkVersions(record, replaced: replaced, previous: previous)
  }

  /// Checks what a record shares with the commit that puts it: its writer, and for a zone's root the list's key
  /// commitments (Z9).
  ///
  /// - Parameter acl: the list in force after the commit.
  public static func check(
    _ record: NodeRecord, commit: ZoneCommit.Fields, acl: ZoneACL.Fields
  ) throws(ZDCSecurityError) {
    let fields = record.fields
    let isSameWriter = fields.writer == commit.writer && fields.writerGen == commit.writerGen
    try require(isSameWriter, .recordBindingMismatch, node: fields.node)
    guard let commitments = fields.commitments else { return }
    try require(commitments == acl.commitments, .keyCommitmentMismatch, node: fields.node)
  }

  /// A zone's root has no place and no name in its zone, and its old keys are in the access list. A trunk's has no content.
  private static func checkRoot(_ fields: NodeRecord.Fields, of zone: ZoneID) throws(ZDCSecurityError) {
    let isBare =
      fields.parentWrap.isEmpty && fields.historyWrap.isEmpty && fields.nameTag == .zero && !fields.isPointer
    try require(isBare, .recordBindingMismatch, node: fields.node)
    let isTrunk = zone == ZoneID(trunkOf: zone.tree)
    try require(!isTrunk || fields.content == nil, .recordBindingMismatch, node: fields.node)
  }

  private static func checkVersions(
    _ record: NodeRecord, replaced: ZoneLeaf?, previous: NodeRecord?
  ) throws(ZDCSecurityError) {
    let fields = record.fields
    if replaced == nil {
      try require(fields.recordVersion == 1, .recordRollback, node: fields.node)
      try checkJump(fields, after: RecordPin(recordVersion: 0, content: nil))
    }
    if let previous { try check(record, after: RecordPin(previous)) }
  }

  /// Checks that a record does not go behind what its checker has accepted of the node before.
  ///
  /// - Parameter pin: of the record that it replaces, or of an earlier one: versions may have been skipped.
  public static func check(_ record: NodeRecord, after pin: RecordPin) throws(ZDCSecurityError) {
    let fields = record.fields
    try require(fields.recordVersion > pin.recordVersion, .recordRollback, node: fields.node)
    if fields.prevRecord == pin.record { try checkJump(fields, after: pin) }
    guard let old = pin.content else { return }
    // Content that is there stays, as itself or newer: without it, its number could begin anew.
    guard let content = fields.content else { throw ZDCSecurityError(.recordRollback, node: fields.node) }
    let isSame = content == old
    let isNewer = content.dataVersion > old.dataVersion && content.blobID != old.blobID
    try require(isSame || isNewer, .recordRollback, node: fields.node)
  }

  /// A version that no other version could follow would make its node unwritable. First content counts from 0.
  private static func checkJump(_ fields: NodeRecord.Fields, after pin: RecordPin) throws(ZDCSecurityError) {
    let recordRise = fields.recordVersion.subtractingReportingOverflow(pin.recordVersion)
    try require(
      !recordRise.overflow && recordRise.partialValue <= Limits.versionJump, .limitExceeded, node: fields.node)
    guard let content = fields.content else { return }
    let (rise, isLower) = content.dataVersion.subtractingReportingOverflow(pin.content?.dataVersion ?? 0)
    try require(isLower || rise <= Limits.versionJump, .limitExceeded, node: fields.node)
  }

  /// The version that a writer gives to the successor of `version`.
  ///
  /// - Throws: `limitExceeded` if no version can follow.
  public static func version(after version: UInt64) throws(ZDCSecurityError) -> UInt64 {
    let (next, overflow) = version.addingReportingOverflow(1)
    try require(!overflow, .limitExceeded)
    return next
  }
}

/// The newest version of a node that a checker has accepted.
public struct RecordPin: Hashable, Sendable {
  public var recordVersion: UInt64
  public var content: NodeRecord.Content?
  /// The record's hash. With it, a record that follows it directly is checked for the size of its step as well.
  public var record: RecordHash?

  public init(recordVersion: UInt64, content: NodeRecord.Content?, record: RecordHash? = nil) {
    self.recordVersion = recordVersion
    self.content = content
    self.record = record
  }

  public init(_ record: NodeRecord) {
    self.init(recordVersion: record.fields.recordVersion, content: record.fields.content, record: record.hash)
  }
}
