package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// The part of a row that belongs to its zone: ID, keys and versions. A node that moves to another zone gets another
/// identity, and keeps its uuid, name and place.
package struct NodeIdentity: Sendable {
  package var zone: Int64
  package var nodeID: NodeID
  package var key: NodeKey
  package var keyGen: UInt32
  package var historyWrap: [UInt8]
  package var cloud: NodeRow.RemoteState?
  package var content: NodeRow.RemoteContent?
  package var unused: RecordPrivate?
  /// The eTag of the content that the cloud has instead, if `content` was queued there and is not sent.
  package var replaced: String?

  /// The identity of a node that the zone does not have yet.
  package init(newIn zone: Int64, nodeID: NodeID, content: NodeRow.RemoteContent?, unused: RecordPrivate?) {
    (self.zone, self.nodeID) = (zone, nodeID)
    (key, keyGen, historyWrap) = (.random(), 1, [])
    (self.content, self.unused) = (content, unused)
  }

  fileprivate init(_ row: NodeRow) {
    (zone, nodeID) = (row.zone, row.nodeID)
    (key, keyGen, historyWrap) = (row.key, row.keyGen, row.historyWrap)
    (cloud, content, unused) = (row.cloud, row.content, row.unused)
  }
}

extension NodeRow {
  package var identity: NodeIdentity {
    get { NodeIdentity(self) }
    set {
      (zone, nodeID) = (newValue.zone, newValue.nodeID)
      (key, keyGen, historyWrap) = (newValue.key, newValue.keyGen, newValue.historyWrap)
      (cloud, content, unused) = (newValue.cloud, newValue.content, newValue.unused)
      quarantine = nil
    }
  }
}

// MARK: Storing

extension NodeIdentity {
  /// Everything but the zone and the ID, which the table has in the clear.
  var bytes: [UInt8] {
    var out = ByteWriter(capacity: 320)
    out.append(contentsOf: key.exportBytes())
    out.append(keyGen)
    out.append16(historyWrap)
    out.append(cloud != nil)
    if let cloud { Self.append(cloud, to: &out) }
    out.append(content != nil)
    if let content { Self.append(content, to: &out) }
    out.append(unused != nil)
    if let unused { out.append16(unused.bytes) }
    out.append16(Array((replaced ?? "").utf8))
    if let burnMs = cloud?.burnMs { out.append(burnMs) }
    return out.bytes
  }

  init(_ bytes: [UInt8], zone: Int64, nodeID: NodeID) throws {
    var reader = ByteReader(bytes)
    (self.zone, self.nodeID) = (zone, nodeID)
    guard let key = NodeKey(try reader.read(count: 32)) else { throw ZDCError(.corruptDatabase) }
    self.key = key
    keyGen = try reader.readUInt32()
    historyWrap = Array(try reader.readVariable16())
    cloud = try reader.readBool() ? try Self.readCloud(&reader) : nil
    content = try reader.readBool() ? try Self.readContent(&reader) : nil
    unused = try reader.readBool() ? try RecordPrivate(Array(try reader.readVariable16()), hasContent: false) : nil
    let eTag = try reader.remaining > 0 ? Array(reader.readVariable16()) : []
    replaced = eTag.isEmpty ? nil : String(decoding: eTag, as: UTF8.self)
    if reader.remaining > 0 { cloud?.burnMs = try reader.readUInt64() }
  }

  private static func append(_ cloud: NodeRow.RemoteState, to out: inout ByteWriter) {
    out.append(cloud.recordVersion)
    out.append(cloud.recordHash)
    out.append(cloud.parent)
    out.append16(cloud.name)
    out.append(cloud.nameTag)
    out.append(cloud.writer)
    out.append(cloud.receivedMs)
  }

  private static func readCloud(_ reader: inout ByteReader) throws -> NodeRow.RemoteState {
    NodeRow.RemoteState(
      recordVersion: try reader.readUInt64(), recordHash: try reader.read32(), parent: try reader.read16(),
      name: Array(try reader.readVariable16()), nameTag: try reader.read16(), writer: try reader.read32(),
      receivedMs: try reader.readUInt64())
  }

  private static func append(_ content: NodeRow.RemoteContent, to out: inout ByteWriter) {
    out.append(content.content)
    out.append(content.secrets)
    out.append(content.writer)
    out.append(content.timeMs)
    out.append(content.receivedMs)
  }

  private static func readContent(_ reader: inout ByteReader) throws -> NodeRow.RemoteContent {
    let content = try reader.readContent()
    return NodeRow.RemoteContent(
      content: content, secrets: try reader.readContentSecrets(), writer: try reader.read32(),
      timeMs: try reader.readUInt64(), receivedMs: try reader.readUInt64())
  }
}
