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

  private static func checkVersions(
    _ record: NodeRecord, replaced: ZoneLeaf?, previous: NodeRecord?
  ) throws(ZDCSecurityError) {
    let fields = record.fields
    if replaced == nil { try require(fields.recordVersion == 1, .recordRollback, node: fields.node) }
    guard let previous else { return }
    try require(fields.recordVersion > previous.fields.recordVersion, .recordRollback, node: fields.node)
    guard let content = fields.content, let old = previous.fields.content else { return }
    let isSame = content == old
    let isNewer = content.dataVersion > old.dataVersion && content.blobID != old.blobID
    try require(isSame || isNewer, .recordRollback, node: fields.node)
  }
}
