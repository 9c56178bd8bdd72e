package import ZDCProtocol

/// The newest commit of a zone that a device has verified, as it is sent to another device.
package struct VerifiedHead: Sendable, Hashable {
  package var zone: ZoneID
  package var seq: UInt64
  package var hash: CommitHash

  /// The length of an encoded head.
  static let byteCount = 88

  package init(zone: ZoneID, seq: UInt64, hash: CommitHash) {
    self.zone = zone
    self.seq = seq
    self.hash = hash
  }
}

extension ByteWriter {
  /// Appends `u16 count`, and for each head `b[32] treeID ‖ b[16] root ‖ u64 seq ‖ b[32] hash`.
  mutating func append(heads: [VerifiedHead]) {
    append(UInt16(heads.count))
    for head in heads {
      append(head.zone.tree)
      append(head.zone.root)
      append(head.seq)
      append(head.hash)
    }
  }
}

extension ByteReader {
  /// Reads what ``ByteWriter/append(heads:)`` wrote.
  ///
  /// - Throws: `limitExceeded` for more heads than the limit, before they are read.
  mutating func readHeads(limit: Int) throws(ZDCSecurityError) -> [VerifiedHead] {
    let count = Int(try readUInt16())
    try require(count <= limit, .limitExceeded)
    var heads: [VerifiedHead] = []
    for _ in 0..<count {
      let zone = ZoneID(tree: try read32(), root: try read16())
      heads.append(VerifiedHead(zone: zone, seq: try readUInt64(), hash: try read32()))
    }
    return heads
  }
}
