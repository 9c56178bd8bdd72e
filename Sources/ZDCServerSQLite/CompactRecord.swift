package import ZDCProtocol

/// The fields of a record that the commit that puts it has too.
package struct RecordContext: Sendable, Hashable {
  package var tree: TreeID
  package var put: ZoneOperation.Put
  package var writer: UserID
  package var writerGen: UInt32
  package var timeMs: UInt64

  package init(tree: TreeID, put: ZoneOperation.Put, writer: UserID, writerGen: UInt32, timeMs: UInt64) {
    self.tree = tree
    self.put = put
    self.writer = writer
    self.writerGen = writerGen
    self.timeMs = timeMs
  }
}

/// The stored form of a live node's record, without the fields of its ``RecordContext``.
///
/// ```
/// u8 0 | record                      whole
/// u8 1 | b[16] nameTag | u8 flags | u8 1 if prevRecord follows, else 0 | [b[32] prevRecord] | n recordVersion
///      | n zigzag(timeMs - the commit's) | v parentWrap | v historyWrap | [b[32] nkCommit | b[32] ckCommit]
///      | [n dataVersion | b[16] blobID | n cipherLen | b[32] contentRoot] | [b[32] dataWriter | u64 dataTimeMs]
///      | [u64 burnMs] | private
/// ```
///
/// `n` is a number of seven bits per byte, least significant first; `v` is `n` and that many bytes. A record that is not
/// rebuilt byte for byte is stored whole.
package struct CompactRecord: Sendable, Hashable {
  package let bytes: [UInt8]

  package init(stored bytes: [UInt8]) {
    self.bytes = bytes
  }

  package init(_ record: [UInt8], context: RecordContext) {
    if let fields = try? NodeRecord(record).fields {
      let compact = CompactRecord(stored: Self.compactBytes(fields, timeMs: context.timeMs))
      if (try? compact.record(context)) == record {
        self = compact
        return
      }
    }
    self.init(whole: record)
  }

  init(whole record: [UInt8]) {
    bytes = [Form.whole.rawValue] + record
  }

  private enum Form: UInt8 { case whole = 0, compact = 1 }

  package var isWhole: Bool { bytes.first == Form.whole.rawValue }

  /// Returns the record's bytes. The caller compares their hash with that of the commit.
  package func record(_ context: RecordContext) throws(ZDCSecurityError) -> [UInt8] {
    if isWhole { return Array(bytes.dropFirst()) }
    return try fields(context).bytes
  }

  /// Returns the tag of the node's name, which is found without the rest.
  package func nameTag() throws(ZDCSecurityError) -> NameTag {
    if isWhole { return try NodeRecord(Array(bytes.dropFirst())).fields.nameTag }
    var reader = ByteReader(bytes)
    _ = try reader.readUInt8()
    return try reader.read16()
  }

  /// Returns the content that the record names.
  package func content() throws(ZDCSecurityError) -> NodeRecord.Content? {
    if isWhole { return try NodeRecord(Array(bytes.dropFirst())).fields.content }
    // The content's fields do not depend on the context.
    let put = ZoneOperation.Put(node: .zero, parent: .zero, record: .zero, keyGen: 0, parentKeyGen: 0)
    return try fields(RecordContext(tree: .zero, put: put, writer: .zero, writerGen: 0, timeMs: 0)).content
  }
}

extension CompactRecord {
  private static func compactBytes(_ fields: NodeRecord.Fields, timeMs: UInt64) -> [UInt8] {
    var out = ByteWriter(
      capacity: 200 + fields.parentWrap.count + fields.historyWrap.count + fields.sealedPrivate.count)
    out.append(Form.compact.rawValue)
    out.append(fields.nameTag)
    out.append(UInt8(truncatingIfNeeded: fields.flags.rawValue))
    out.append(fields.prevRecord != .zero)
    if fields.prevRecord != .zero { out.append(fields.prevRecord) }
    out.append(number: fields.recordVersion)
    out.append(difference: fields.timeMs &- timeMs)
    out.append(counted: fields.parentWrap)
    out.append(counted: fields.historyWrap)
    write(fields, to: &out)
    out.append(contentsOf: fields.sealedPrivate)
    return out.bytes
  }

  private static func write(_ fields: NodeRecord.Fields, to out: inout ByteWriter) {
    if let commitments = fields.commitments {
      out.append(commitments.node)
      out.append(commitments.content)
    }
    if let content = fields.content {
      out.append(number: content.dataVersion)
      out.append(content.blobID)
      out.append(number: content.cipherLength)
      out.append(content.contentRoot)
    }
    if let author = fields.dataAuthor {
      out.append(author.writer)
      out.append(author.timeMs)
    }
    if let burnMs = fields.burnMs { out.append(burnMs) }
  }

  private static let knownFlags: NodeRecord.Flags = [.zoneRoot, .pointer, .hasContent, .burn, .dataBy]

  private func fields(_ context: RecordContext) throws(ZDCSecurityError) -> NodeRecord.Fields {
    var reader = ByteReader(bytes)
    try require(try reader.readUInt8() == Form.compact.rawValue, .unsupportedVersion)
    let nameTag: NameTag = try reader.read16()
    let flags = NodeRecord.Flags(rawValue: UInt16(try reader.readUInt8()))
    try require(flags.isSubset(of: Self.knownFlags), .unsupportedVersion)
    let prevRecord: RecordHash = try reader.readBool() ? try reader.read32() : .zero
    let put = context.put
    var fields = NodeRecord.Fields(
      tree: context.tree, node: put.node, parent: put.parent, recordVersion: try reader.readNumber(),
      prevRecord: prevRecord, keyGen: put.keyGen, parentKeyGen: put.parentKeyGen, parentWrap: [], historyWrap: [],
      nameTag: nameTag, isPointer: flags.contains(.pointer), sealedPrivate: [], writer: context.writer,
      writerGen: context.writerGen, timeMs: context.timeMs &+ (try reader.readDifference()))
    fields.parentWrap = try reader.readCounted()
    fields.historyWrap = try reader.readCounted()
    try Self.read(flags, from: &reader, into: &fields)
    fields.sealedPrivate = Array(try reader.read(count: reader.remaining))
    return fields
  }

  private static func read(
    _ flags: NodeRecord.Flags, from reader: inout ByteReader, into fields: inout NodeRecord.Fields
  ) throws(ZDCSecurityError) {
    if flags.contains(.zoneRoot) {
      fields.commitments = NodeRecord.ZoneCommitments(node: try reader.read32(), content: try reader.read32())
    }
    if flags.contains(.hasContent) {
      fields.content = NodeRecord.Content(
        dataVersion: try reader.readNumber(), blobID: try reader.read16(), cipherLength: try reader.readNumber(),
        contentRoot: try reader.read32())
    }
    if flags.contains(.dataBy) {
      fields.dataAuthor = NodeRecord.DataAuthor(writer: try reader.read32(), timeMs: try reader.readUInt64())
    }
    if flags.contains(.burn) { fields.burnMs = try reader.readUInt64() }
  }
}

extension ByteWriter {
  fileprivate mutating func append(number: UInt64) {
    var rest = number
    while rest > 0x7f {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }

  /// Appends a difference of two times, which may be negative.
  fileprivate mutating func append(difference: UInt64) {
    let signed = Int64(bitPattern: difference)
    append(number: UInt64(bitPattern: (signed << 1) ^ (signed >> 63)))
  }

  fileprivate mutating func append(counted field: [UInt8]) {
    append(number: UInt64(field.count))
    append(contentsOf: field)
  }
}

extension ByteReader {
  fileprivate mutating func readNumber() throws(ZDCSecurityError) -> UInt64 {
    var number: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 64, by: 7) {
      let byte = try readUInt8()
      try require(shift < 63 || byte <= 1, .nonCanonicalEncoding)
      number |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 { return number }
    }
    throw ZDCSecurityError(.nonCanonicalEncoding)
  }

  fileprivate mutating func readDifference() throws(ZDCSecurityError) -> UInt64 {
    let number = try readNumber()
    return (number >> 1) ^ (0 &- (number & 1))
  }

  /// - Throws: if the length is above the two bytes that a record has for it.
  fileprivate mutating func readCounted() throws(ZDCSecurityError) -> [UInt8] {
    let count = try readNumber()
    try require(count <= UInt64(UInt16.max), .limitExceeded)
    return Array(try read(count: Int(count)))
  }
}
