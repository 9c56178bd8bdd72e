internal import ZDCProtocol
internal import ZDCServer

/// A row of a live node, and the commit that put its record.
struct LiveNode {
  let key: Int64
  let commitKey: Int64
  let index: Int
  let commit: CommitPuts
  let dataReceivedMs: UInt64
  /// The key of a file's row, zero for small content.
  let blob: Int64?
  let record: CompactRecord

  /// - Throws: ``RecordDamaged`` unless the rebuilt record has the hash that the commit names.
  func storedRecord() throws -> StoredRecord {
    let bytes = try? rebuilt()
    guard let bytes, RecordHash(labelledHash: "record", bytes) == (try put().record) else {
      throw RecordDamaged(RecordName(node: try put().node, hash: try put().record))
    }
    return StoredRecord(bytes: bytes, recordReceivedMs: commit.receivedMs, dataReceivedMs: dataReceivedMs)
  }

  /// Returns the record, whose hash is not compared.
  func rebuilt() throws -> [UInt8] { try record.record(try commit.context(index)) }

  func put() throws -> ZoneOperation.Put { try commit.put(index) }

  /// Small content is stored under the node's key; its number in the contract is below zero.
  var blobKey: Int64? { blob.map { $0 == 0 ? -key : $0 } }

  /// Returns the node as its zone has it.
  func leaf(in zone: ZoneKey) throws -> LogNode { try commit.leaf(index, in: zone) }

  func row(in zone: ZoneKey) throws -> NodeRow {
    let leaf = try leaf(in: zone)
    // A zone's root has no parent, and no name here.
    let tag = leaf.parent == .zero ? nil : try record.nameTag()
    return NodeRow(leaf: leaf, tag: tag, record: key, blob: blobKey)
  }
}
