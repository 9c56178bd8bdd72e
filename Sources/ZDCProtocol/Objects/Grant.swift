/// A zone's key, wrapped for one member (PROTOCOL 3.9). The access list holds its hash.
package struct Grant: Sendable, Hashable {
  package let zone: ZoneID
  package let zoneKeyGen: UInt32
  package let user: UserID
  package let wrap: [UInt8]
  package let bytes: [UInt8]

  package init(zone: ZoneID, zoneKeyGen: UInt32, user: UserID, wrap: [UInt8]) {
    self.zone = zone
    self.zoneKeyGen = zoneKeyGen
    self.user = user
    self.wrap = wrap
    var out = ByteWriter(magic: "ZDGR", capacity: 100 + wrap.count)
    out.append(zone.tree)
    out.append(zone.root)
    out.append(zoneKeyGen)
    out.append(user)
    out.append16(wrap)
    bytes = out.bytes
  }

  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    try require(bytes.count <= Limits.grantBytes, .limitExceeded)
    var reader = ByteReader(bytes)
    try reader.readPreamble(magic: "ZDGR")
    zone = ZoneID(tree: try reader.read32(), root: try reader.read16())
    zoneKeyGen = try reader.readUInt32()
    user = try reader.read32()
    wrap = Array(try reader.readVariable16())
    try reader.finish()
    self.bytes = bytes
  }

  /// `H("grant", wrap)`, the hash that the member's entry in the access list states.
  package var wrapHash: GrantHash { GrantHash(labelledHash: "grant", wrap) }
}
