internal import ZDCProtocol
internal import ZDCServer

/// The puts of a stored commit: live nodes name theirs by its number instead of repeating its fields.
///
/// The operations are read where they are needed, because a lookup needs one of up to a thousand.
struct CommitPuts {
  let zone: ZoneKey
  let seq: UInt64
  let receivedMs: UInt64
  let bytes: [UInt8]
  private let tree: TreeID
  private let writer: UserID
  private let writerGen: UInt32
  private let timeMs: UInt64
  /// The offset of each put behind its kind.
  private let offsets: [Int]

  var count: Int { offsets.count }

  init(zone: ZoneKey, receivedMs: UInt64, bytes: [UInt8]) throws {
    self.zone = zone
    self.receivedMs = receivedMs
    self.bytes = bytes
    var reader = ByteReader(bytes)
    try reader.readPreamble(magic: "ZDZC")
    tree = try reader.read32()
    _ = try reader.read(count: 16)
    seq = try reader.readUInt64()
    // The previous commit and the access list.
    _ = try reader.read(count: 64)
    writer = try reader.read32()
    writerGen = try reader.readUInt32()
    timeMs = try reader.readUInt64()
    // The writer's view of the key log.
    _ = try reader.read(count: 40)
    offsets = try Self.offsets(&reader)
  }

  private static func offsets(_ reader: inout ByteReader) throws -> [Int] {
    let count = Int(try reader.readUInt16())
    var offsets: [Int] = []
    offsets.reserveCapacity(min(count, reader.remaining / 33 + 1))
    for _ in 0..<count {
      let kind = try reader.readUInt8()
      guard let length = ZoneOperation.length(ofKind: kind) else { throw StoreError.damaged }
      if kind == 1 { offsets.append(reader.offset) }
      _ = try reader.read(count: length)
    }
    return offsets
  }

  func put(_ index: Int) throws -> ZoneOperation.Put {
    guard offsets.indices.contains(index) else { throw StoreError.damaged }
    var reader = ByteReader(bytes[offsets[index]...])
    return ZoneOperation.Put(
      node: try reader.read16(), parent: try reader.read16(), record: try reader.read32(),
      keyGen: try reader.readUInt32(), parentKeyGen: try reader.readUInt32())
  }

  /// Returns a node as its zone has it. A zone that was split off begins with nodes that another zone's commits put.
  func leaf(_ index: Int, in zone: ZoneKey) throws -> LogNode {
    let put = try put(index)
    return LogNode(
      node: put.node, parent: put.parent, record: put.record, putSeq: self.zone == zone ? seq : 0, keyGen: put.keyGen,
      parentKeyGen: put.parentKeyGen)
  }

  func context(_ index: Int) throws -> RecordContext {
    RecordContext(tree: tree, put: try put(index), writer: writer, writerGen: writerGen, timeMs: timeMs)
  }
}
