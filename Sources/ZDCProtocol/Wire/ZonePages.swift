/// `POST /v1/zones/commits`: a zone, and the last commit of its log that the caller has.
package struct ZonePosition: Sendable, Hashable {
  package var zone: ZoneID
  /// Nil before the genesis.
  package var after: UInt64?

  package init(zone: ZoneID, after: UInt64?) {
    (self.zone, self.after) = (zone, after)
  }

  /// The bytes of one position: `b[32] treeID ‖ b[16] zoneRoot ‖ u64 next`, where `next` is the first number wanted.
  package static let byteCount = 56

  package static func bytes(of positions: [ZonePosition]) -> [UInt8] {
    var out = ByteWriter(capacity: byteCount * positions.count)
    for position in positions {
      out.append(position.zone.tree)
      out.append(position.zone.root)
      out.append(position.after.map { $0 == .max ? .max : $0 + 1 } ?? 0 as UInt64)
    }
    return out.bytes
  }

  /// Reads a whole body of positions.
  ///
  /// - Throws: `limitExceeded` for more than ``Limits/zonesPerRequest``.
  package static func all(_ bytes: [UInt8]) throws(ZDCSecurityError) -> [ZonePosition] {
    try require(bytes.count <= byteCount * Limits.zonesPerRequest, .limitExceeded)
    var reader = ByteReader(bytes)
    var positions: [ZonePosition] = []
    while reader.remaining > 0 {
      let zone = ZoneID(tree: try reader.read32(), root: try reader.read16())
      let next = try reader.readUInt64()
      positions.append(ZonePosition(zone: zone, after: next == 0 ? nil : next - 1))
    }
    return positions
  }
}

/// The answer for one zone of `POST /v1/zones/commits`.
package struct ZonePage: Sendable {
  /// The head and the page; nil if the zone does not exist or the caller may not see it.
  package struct Log: Sendable {
    package var seq: UInt64
    package var head: CommitHash
    package var hasMore: Bool
    /// A bundle.
    package var body: ArraySlice<UInt8>

    package init(seq: UInt64, head: CommitHash, hasMore: Bool, body: ArraySlice<UInt8>) {
      self.seq = seq
      self.head = head
      self.hasMore = hasMore
      self.body = body
    }
  }

  package var zone: ZoneID
  package var log: Log?

  package init(zone: ZoneID, log: Log?) {
    (self.zone, self.log) = (zone, log)
  }

  /// The bytes of one answer without its page.
  package static let headerBytes = 93

  package func append(to out: inout ByteWriter) {
    out.append(zone.tree)
    out.append(zone.root)
    guard let log else { return out.append(UInt8(0)) }
    out.append(UInt8(log.hasMore ? 2 : 1))
    out.append(log.seq)
    out.append(log.head)
    out.append32(log.body)
  }

  /// Reads a whole answer.
  package static func all(_ bytes: [UInt8]) throws(ZDCSecurityError) -> [ZonePage] {
    var reader = ByteReader(bytes)
    var pages: [ZonePage] = []
    while reader.remaining > 0 {
      let zone = ZoneID(tree: try reader.read32(), root: try reader.read16())
      let state = try reader.readUInt8()
      try require(state <= 2 && pages.count < Limits.zonesPerRequest, .nonCanonicalEncoding)
      guard state > 0 else {
        pages.append(ZonePage(zone: zone, log: nil))
        continue
      }
      let (seq, head): (UInt64, CommitHash) = (try reader.readUInt64(), try reader.read32())
      let body = try reader.readVariable32(limit: bytes.count)
      pages.append(ZonePage(zone: zone, log: Log(seq: seq, head: head, hasMore: state == 2, body: body)))
    }
    return pages
  }
}
