/// The record checks that need no key (PROTOCOL 3.6), in order. Failures are class 1: an honest server would have
/// refused the record.
package enum RecordRules {
  /// Checks a record against the put that names it and its zone.
  ///
  /// - Parameters:
  ///   - previous: The node's record before this put, if the caller has it. Its hash must be the one that the log
  ///     replaced.
  ///   - replaced: The log node before this put; nil for a new node.
  package static func check(
    _ record: NodeRecord, put: ZoneOperation.Put, zone: ZoneID, replaced: LogNode?, previous: NodeRecord? = nil
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

  /// Checks the fields that a record shares with its commit: the writer, and for a zone's root the access list's key
  /// commitments (Z9).
  ///
  /// - Parameter acl: The access list in force after the commit.
  package static func check(
    _ record: NodeRecord, commit: ZoneCommit.Fields, acl: ZoneACL.Fields
  ) throws(ZDCSecurityError) {
    let fields = record.fields
    let isSameWriter = fields.writer == commit.writer && fields.writerGen == commit.writerGen
    try require(isSameWriter, .recordBindingMismatch, node: fields.node)
    guard let commitments = fields.commitments else { return }
    try require(commitments == acl.commitments, .keyCommitmentMismatch, node: fields.node)
  }

  /// Checks a record against its writer's permissions before the commit. The right `R` narrows `w` to records without
  /// content, which an operation does not show.
  package static func check(
    _ record: NodeRecord, permissions: ZoneACL.Permissions
  ) throws(ZDCSecurityError) {
    let isAllowed = !permissions.contains(.recordsOnly) || record.fields.content == nil
    guard !isAllowed else { return }
    throw ZDCSecurityError(.writerNotAuthorized, node: record.fields.node, user: record.fields.writer)
  }

  /// Checks the record with which the genesis of a zone that was split off continues its root's versions.
  ///
  /// - Parameter previous: The root's record in the parent zone, if the caller has it.
  package static func check(
    splitRoot record: NodeRecord, continuing previous: NodeRecord
  ) throws(ZDCSecurityError) {
    let (version, overflow) = previous.fields.recordVersion.addingReportingOverflow(1)
    let continues =
      !overflow && record.fields.recordVersion == version && record.fields.prevRecord == previous.hash
      && record.fields.content == previous.fields.content
    try require(continues, .splitMismatch, node: record.fields.node)
  }

  /// Checks a zone's root. It has no place or name in its zone, and its old keys are in the access list. A trunk's root
  /// has no content.
  private static func checkRoot(_ fields: NodeRecord.Fields, of zone: ZoneID) throws(ZDCSecurityError) {
    let isBare =
      fields.parentWrap.isEmpty && fields.historyWrap.isEmpty && fields.nameTag == .zero && !fields.isPointer
    try require(isBare, .recordBindingMismatch, node: fields.node)
    let isTrunk = zone == ZoneID(trunkOf: zone.tree)
    try require(!isTrunk || fields.content == nil, .recordBindingMismatch, node: fields.node)
  }

  private static func checkVersions(
    _ record: NodeRecord, replaced: LogNode?, previous: NodeRecord?
  ) throws(ZDCSecurityError) {
    let fields = record.fields
    if replaced == nil {
      try require(fields.recordVersion == 1, .recordRollback, node: fields.node)
      // Content that is moved or restored keeps its version, which a member may have raised.
      let version = fields.content?.dataVersion ?? 0
      try require(version <= Limits.firstDataVersion, .limitExceeded, node: fields.node)
    }
    if let previous { try check(record, after: RecordPin(previous)) }
  }

  /// Checks that a record is not older than what the caller has accepted for the node before.
  ///
  /// - Parameter pin: The version of the record that it replaces, or of an earlier one, since versions may have been
  ///   skipped.
  package static func check(_ record: NodeRecord, after pin: RecordPin) throws(ZDCSecurityError) {
    let fields = record.fields
    try require(fields.recordVersion > pin.recordVersion, .recordRollback, node: fields.node)
    if fields.prevRecord == pin.record { try checkJump(fields, after: pin) }
    guard let old = pin.content else { return }
    // Existing content must remain, unchanged or newer. Otherwise its version could start over.
    guard let content = fields.content else { throw ZDCSecurityError(.recordRollback, node: fields.node) }
    let isSame = content == old
    let isOther = content.blobID != old.blobID || isRestored(fields, after: pin)
    let isNewer = content.dataVersion > old.dataVersion && isOther
    try require(isSame || isNewer, .recordRollback, node: fields.node)
  }

  /// Whether the record may restore the content of the pin, which other content had replaced in a version that the caller
  /// has not seen.
  private static func isRestored(_ fields: NodeRecord.Fields, after pin: RecordPin) -> Bool {
    guard let content = fields.content, let old = pin.content, fields.prevRecord != pin.record else { return false }
    return content.cipherLength == old.cipherLength && content.contentRoot == old.contentRoot
  }

  /// Limits the increase of versions. A version that no other version could follow would make its node unwritable. The
  /// first content counts from 0.
  private static func checkJump(_ fields: NodeRecord.Fields, after pin: RecordPin) throws(ZDCSecurityError) {
    let recordRise = fields.recordVersion.subtractingReportingOverflow(pin.recordVersion)
    try require(
      !recordRise.overflow && recordRise.partialValue <= Limits.versionJump, .limitExceeded, node: fields.node)
    guard let content = fields.content else { return }
    let (rise, isLower) = content.dataVersion.subtractingReportingOverflow(pin.content?.dataVersion ?? 0)
    try require(isLower || rise <= Limits.versionJump, .limitExceeded, node: fields.node)
  }

  /// Returns the version that a writer gives to the successor of `version`.
  ///
  /// - Throws: `limitExceeded` if no version can follow.
  package static func version(after version: UInt64) throws(ZDCSecurityError) -> UInt64 {
    let (next, overflow) = version.addingReportingOverflow(1)
    try require(!overflow, .limitExceeded)
    return next
  }
}

/// The newest version of a node that a client or server has accepted.
package struct RecordPin: Hashable, Sendable {
  package var recordVersion: UInt64
  package var content: NodeRecord.Content?
  /// The record's hash. If it is set, a record that directly follows is also checked for the size of its version
  /// increase.
  package var record: RecordHash?

  package init(recordVersion: UInt64, content: NodeRecord.Content?, record: RecordHash? = nil) {
    self.recordVersion = recordVersion
    self.content = content
    self.record = record
  }

  package init(_ record: NodeRecord) {
    self.init(recordVersion: record.fields.recordVersion, content: record.fields.content, record: record.hash)
  }
}
