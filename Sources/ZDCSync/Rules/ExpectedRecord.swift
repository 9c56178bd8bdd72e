package import ZDCClientStore
package import ZDCProtocol

extension LogNodeStore.Expected {
  /// Compares a record with what the verified log says about the version.
  ///
  /// - Throws: `ZDCSecurityError`.
  package func check(_ record: NodeRecord, in zone: ZoneID) throws {
    let put = ZoneOperation.Put(
      node: leaf.node, parent: leaf.parent, record: leaf.record, keyGen: leaf.keyGen, parentKeyGen: leaf.parentKeyGen)
    var replaced: LogNode?
    let prev = isVouched ? record.fields.prevRecord : self.prev
    if prev != .zero {
      replaced = leaf
      replaced?.record = prev
    }
    try RecordRules.check(record, put: put, zone: zone, replaced: replaced)
    if isVouched { return }
    let isSameWriter = record.fields.writer == writer && record.fields.writerGen == writerGen
    try require(isSameWriter, .recordBindingMismatch, node: leaf.node)
    if isRecordsOnly { try RecordRules.check(record, permissions: .recordsOnly) }
  }
}
