/// One signed step of a zone's log (PROTOCOL 3.7): at most 1,000 operations, one signature.
package struct ZoneCommit: Sendable, Hashable {
  package struct Fields: Sendable, Hashable {
    package var zone: ZoneID
    package var seq: UInt64
    package var prev: CommitHash
    /// The access list in force after this commit.
    package var aclHash: ACLHash
    package var writer: UserID
    package var writerGen: UInt32
    package var timeMs: UInt64
    package var transparencySize: UInt64 = 0
    package var transparencyRoot: TransparencyRoot = .zero
    package var operations: [ZoneOperation]

    package init(
      zone: ZoneID, seq: UInt64, prev: CommitHash, aclHash: ACLHash, writer: UserID, writerGen: UInt32,
      timeMs: UInt64, operations: [ZoneOperation]
    ) {
      self.zone = zone
      self.seq = seq
      self.prev = prev
      self.aclHash = aclHash
      self.writer = writer
      self.writerGen = writerGen
      self.timeMs = timeMs
      self.operations = operations
    }

    /// The bytes that the signature covers, under the label "commit".
    package var unsignedBytes: [UInt8] {
      var out = ByteWriter(magic: "ZDZC", capacity: 280 + operations.count * 73)
      out.append(zone.tree)
      out.append(zone.root)
      out.append(seq)
      out.append(prev)
      out.append(aclHash)
      out.append(writer)
      out.append(writerGen)
      out.append(timeMs)
      out.append(transparencySize)
      out.append(transparencyRoot)
      out.append(UInt16(operations.count))
      for operation in operations { operation.write(to: &out) }
      return out.bytes
    }
  }

  package static let signatureBytes = 64

  package let fields: Fields
  package let signature: [UInt8]
  package let bytes: [UInt8]
  package let hash: CommitHash

  /// Signs fields that this process created. `sign` receives the unsigned bytes and returns 64 bytes.
  package init(_ fields: Fields, sign: ([UInt8]) throws -> [UInt8]) rethrows {
    let unsigned = fields.unsignedBytes
    signature = try sign(unsigned)
    self.fields = fields
    bytes = unsigned + signature
    hash = CommitHash(labelledHash: "commit", bytes)
  }

  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    try require(bytes.count <= Limits.commitBytes, .limitExceeded)
    var reader = ByteReader(bytes)
    fields = try Self.readFields(&reader)
    signature = Array(try reader.read(count: Self.signatureBytes))
    try reader.finish()
    self.bytes = bytes
    hash = CommitHash(labelledHash: "commit", bytes)
  }

  package var signedBytes: ArraySlice<UInt8> { bytes.dropLast(Self.signatureBytes) }

  private static func readFields(_ reader: inout ByteReader) throws(ZDCSecurityError) -> Fields {
    try reader.readPreamble(magic: "ZDZC")
    let zone = ZoneID(tree: try reader.read32(), root: try reader.read16())
    var fields = Fields(
      zone: zone, seq: try reader.readUInt64(), prev: try reader.read32(), aclHash: try reader.read32(),
      writer: try reader.read32(), writerGen: try reader.readUInt32(), timeMs: try reader.readUInt64(), operations: [])
    fields.transparencySize = try reader.readUInt64()
    fields.transparencyRoot = try reader.read32()
    let isNone = fields.transparencyRoot == .zero
    try require((fields.transparencySize == 0) == isNone, .nonCanonicalEncoding)
    try require(isNone, .unsupportedVersion)
    fields.operations = try readOperations(&reader)
    return fields
  }

  private static func readOperations(_ reader: inout ByteReader) throws(ZDCSecurityError) -> [ZoneOperation] {
    let count = Int(try reader.readUInt16())
    try require(count >= 1, .nonCanonicalEncoding)
    try require(count <= Limits.commitOperations, .limitExceeded)
    var operations: [ZoneOperation] = []
    // The smallest operation has 37 bytes. No more is reserved than the input can hold.
    operations.reserveCapacity(min(count, reader.remaining / 37 + 1))
    for _ in 0..<count { operations.append(try ZoneOperation(&reader)) }
    return operations
  }

  /// Returns `H("zone-genesis", treeID ‖ zoneRoot ‖ parent zone's head before the split)`, which is the `prev` of a
  /// genesis commit. The head is zero for a zone that was not split off.
  package static func genesisPrev(zone: ZoneID, parentHead: CommitHash = .zero) -> CommitHash {
    CommitHash(labelledHash: "zone-genesis", zone.tree.bytes, zone.root.bytes, parentHead.bytes)
  }
}

extension ZoneCommit.Fields {
  /// The state that a genesis begins with; nil for a zone that was not split off.
  package var genesisState: ZoneOperation.GenesisState? {
    if case .genesisState(let state)? = operations.first { state } else { nil }
  }

  /// Checks the operations whose places are fixed: a state begins a genesis, and one split stands before all puts and
  /// has no delete beside it, which could remove the mount or the nodes above it.
  package func checkOrderOfOperations() throws(ZDCSecurityError) {
    var (splits, changes, deletes) = (0, 0, 0)
    for (index, operation) in operations.enumerated() {
      switch operation {
      case .genesisState: try require(seq == 0 && index == 0, .nonCanonicalEncoding)
      case .split:
        try require(splits == 0 && changes == 0, .nonCanonicalEncoding)
        splits += 1
      case .put: changes += 1
      case .delete: deletes += 1
      case .acl, .retireKey: break
      }
    }
    try require(splits == 0 || deletes == 0, .nonCanonicalEncoding)
  }
}
