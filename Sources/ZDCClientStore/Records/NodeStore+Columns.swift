internal import Foundation
package import GRDB
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

// The columns of a NodeRow. Name, keys, creation time, exact sizes and the thumbnail's tag are one sealed value, bound
// to the row's uuid.

extension NodeStore {
  private static let columns = [
    "uuid", "zone", "nodeID", "parent", "depth", "nameTag", "sealed", "keyGen", "historyWrap", "recordVersion",
    "recordHash", "cloudParent", "cloudNameTag", "writer", "recordReceivedMs", "burnMs", "dataVersion", "blobID",
    "cipherLength", "contentRoot", "dataWriter", "dataTimeMs", "dataReceivedMs", "quarantine", "cloudBurnMs",
  ]

  static let select = "SELECT id, \(columns.joined(separator: ", ")) FROM zdc_node"

  static let insertStatement = """
    INSERT INTO zdc_node (\(columns.joined(separator: ", ")))
    VALUES (\(repeatElement("?", count: columns.count).joined(separator: ", ")))
    """

  /// For a node that was never uploaded. Missing values are not bound, because binding them costs more than sealing.
  static let insertFreshStatement = """
    INSERT INTO zdc_node
    (uuid, zone, nodeID, parent, depth, nameTag, sealed, keyGen, burnMs, recordVersion)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)
    """

  func freshArguments(_ row: NodeRow) throws -> StatementArguments {
    [
      row.uuid, row.zone, row.nodeID.data, row.parent, row.depth, row.nameTag.data, try seal(row), Int64(row.keyGen),
      row.burnMs?.stored,
    ]
  }

  static let updateStatement = """
    UPDATE zdc_node SET \(columns.map { "\($0) = ?" }.joined(separator: ", ")) WHERE id = ?
    """

  package func fetch(_ condition: String, _ arguments: StatementArguments) throws -> NodeRow? {
    try db.firstRow("\(Self.select) \(condition)", arguments, decodeCached)
  }

  /// Like ``fetchAll(_:_:)``, for a few rows that are likely to be read more than once.
  func fetchFew(_ condition: String, _ arguments: StatementArguments) throws -> [NodeRow] {
    var rows: [NodeRow] = []
    try db.forEachRow("\(Self.select) \(condition)", arguments) { rows.append(try decodeCached($0)) }
    return rows
  }

  package func fetchAll(_ condition: String, _ arguments: StatementArguments) throws -> [NodeRow] {
    var rows: [NodeRow] = []
    try db.forEachRow("\(Self.select) \(condition)", arguments) { rows.append(try decode($0)) }
    return rows
  }

  /// Without the row's identity and its place in the local tree: no index has to be touched.
  static let updateCloudStatement = """
    UPDATE zdc_node SET \(columns[6...].map { "\($0) = ?" }.joined(separator: ", ")) WHERE id = ?
    """

  func cloudArguments(_ row: NodeRow) throws -> StatementArguments {
    StatementArguments(try values(row).dropFirst(6) + [row.id])
  }

  package func arguments(_ row: NodeRow) throws -> StatementArguments { StatementArguments(try values(row)) }

  private func values(_ row: NodeRow) throws -> [(any DatabaseValueConvertible)?] {
    let cloud = row.cloud
    let content = row.content
    return [
      row.uuid, row.zone, row.nodeID.data, row.parent, row.depth, row.nameTag.data, try seal(row), Int64(row.keyGen),
      row.historyWrap.isEmpty ? nil : Data(row.historyWrap), cloud?.recordVersion.stored ?? 0,
      cloud?.recordHash.data, cloud?.parent.data, cloud?.nameTag.data, cloud?.writer.data, cloud?.receivedMs.stored,
      row.burnMs?.stored, content?.content.dataVersion.stored, content?.content.blobID.data,
      content?.content.cipherLength.stored, content?.content.contentRoot.data, content?.writer.data,
      content?.timeMs.stored, content?.receivedMs.stored, row.quarantine, cloud?.burnMs?.stored,
    ]
  }

  package func decode(_ row: RawRow) throws -> NodeRow {
    let uuid: String = row[1]
    return try decode(row, uuid, try open(try row.requiredBytes(7), uuid: uuid))
  }

  /// Decodes a row whose sealed value is likely to have been opened before.
  private func decodeCached(_ row: RawRow) throws -> NodeRow {
    let (uuid, sealed): (String, [UInt8]) = (row[1], try row.requiredBytes(7))
    return try decode(row, uuid, try opened.value(of: uuid, stored: sealed) { try open(sealed, uuid: uuid) })
  }

  private func decode(_ row: RawRow, _ uuid: String, _ secrets: Secrets) throws -> NodeRow {
    var node = NodeRow(
      id: row[0], uuid: uuid, zone: row[2], nodeID: try NodeID(row, 3), parent: row[4], depth: row[5],
      nameTag: try NameTag(row, 6), name: secrets.name, key: secrets.key, keyGen: UInt32(row[8] as Int64),
      historyWrap: row.bytes(9) ?? [], createdMs: secrets.createdMs, burnMs: row.unsigned(16))
    node.unused = secrets.unused
    node.firstKey = secrets.firstKey
    node.quarantine = row[24]
    node.cloud = try decodeCloud(row, name: secrets.cloudName)
    if let content = secrets.content { node.content = try decodeContent(row, content) }
    return node
  }

  private func decodeCloud(_ row: RawRow, name: [UInt8]) throws -> NodeRow.RemoteState? {
    guard let version = row.unsigned(10), version > 0 else { return nil }
    return NodeRow.RemoteState(
      recordVersion: version, recordHash: try RecordHash(row, 11), parent: try NodeID(row, 12), name: name,
      nameTag: try NameTag(row, 13), writer: try UserID(row, 14), receivedMs: row.unsigned(15) ?? 0,
      burnMs: row.unsigned(25))
  }

  private func decodeContent(_ row: RawRow, _ secrets: ContentSecrets) throws -> NodeRow.RemoteContent {
    guard let version = row.unsigned(17), let length = row.unsigned(19) else { throw ZDCError(.corruptDatabase) }
    let content = NodeRecord.Content(
      dataVersion: version, blobID: try BlobID(row, 18), cipherLength: length,
      contentRoot: try ContentRoot(row, 20))
    return NodeRow.RemoteContent(
      content: content, secrets: secrets, writer: try UserID(row, 21), timeMs: row.unsigned(22) ?? 0,
      receivedMs: row.unsigned(23) ?? 0)
  }

  // MARK: The sealed value

  struct Secrets: Sendable {
    var name: [UInt8]
    var key: NodeKey
    var createdMs: UInt64
    var content: ContentSecrets?
    var cloudName: [UInt8]
    @Boxed var unused: RecordPrivate?
    var firstKey: NodeKey?
  }

  private func seal(_ row: NodeRow) throws -> Data {
    var out = ByteWriter(capacity: 122 + row.name.count)
    out.append(UInt8(1))
    out.append16(row.name)
    out.append(contentsOf: row.key.exportBytes())
    out.append(row.createdMs)
    out.append(row.content != nil)
    if let content = row.content { out.append(content.secrets) }
    // Nearly always the same name: then it is not written twice.
    let cloudName = row.cloud?.name ?? row.name
    out.append(cloudName != row.name)
    if cloudName != row.name { out.append16(cloudName) }
    if row.unused != nil || row.firstKey != nil { out.append16(row.unused?.bytes ?? []) }
    if let first = row.firstKey { out.append(contentsOf: first.exportBytes()) }
    return Data(try sealer.seal(out.bytes, row: Array(row.uuid.utf8)))
  }

  /// Gives a row the children of another one, with tags under its own key.
  package func adoptChildren(of other: Int64, under parent: NodeRow) throws {
    let tags = try childTags(of: other, under: parent)
    let statement = try db.cachedStatement(sql: "UPDATE zdc_node SET parent = ?, nameTag = ? WHERE id = ?")
    for (id, tag) in tags { try statement.execute(arguments: [parent.id, tag.data, id]) }
    invalidate()
  }

  /// All tags are computed before the first one is stored: storing changes the index by which children are found.
  private func childTags(of id: Int64, under parent: NodeRow) throws -> [(id: Int64, tag: NameTag)] {
    let keys = try nameKeys(of: parent)
    var tags: [(id: Int64, tag: NameTag)] = []
    // By way of their numbers: SQLite would sort the sealed values.
    let children = """
      SELECT id, uuid, sealed FROM zdc_node WHERE id IN (SELECT id FROM zdc_node WHERE parent = ?) ORDER BY id
      """
    try db.forEachRow(children, [id]) { row in
      tags.append((id: row[0], tag: keys.nameTag(folded: try name(row))))
    }
    return tags
  }

  /// Opens the name of a row of its number, UUID and sealed value, and makes no key of the rest.
  private func name(_ row: RawRow) throws -> [UInt8] {
    var reader = ByteReader(try sealer.open(try row.requiredBytes(2), row: try row.requiredBytes(1)))
    guard try reader.readUInt8() == 1 else { throw ZDCError(.corruptDatabase) }
    return Array(try reader.readVariable16())
  }

  private func readFirstKey(_ reader: inout ByteReader) throws -> NodeKey? {
    guard reader.remaining > 0 else { return nil }
    guard let key = NodeKey(try reader.read(count: 32)) else { throw ZDCError(.corruptDatabase) }
    return key
  }

  private func open(_ sealed: [UInt8], uuid: String) throws -> Secrets {
    var reader = ByteReader(try sealer.open(sealed, row: Array(uuid.utf8)))
    guard try reader.readUInt8() == 1 else { throw ZDCError(.corruptDatabase) }
    let name = Array(try reader.readVariable16())
    guard let key = NodeKey(try reader.read(count: 32)) else { throw ZDCError(.corruptDatabase) }
    let createdMs = try reader.readUInt64()
    let content = try reader.readBool() ? try reader.readContentSecrets() : nil
    let cloudName = try reader.readBool() ? Array(try reader.readVariable16()) : name
    let unused = reader.remaining > 0 ? Array(try reader.readVariable16()) : []
    return Secrets(
      name: name, key: key, createdMs: createdMs, content: content, cloudName: cloudName,
      unused: unused.isEmpty ? nil : try RecordPrivate(unused, hasContent: false), firstKey: try readFirstKey(&reader))
  }
}
