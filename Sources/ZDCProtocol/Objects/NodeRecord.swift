/// A node's record, called RCRD in the original framework (PROTOCOL 3.6).
///
/// It has no signature: the signed commit of its zone lists its hash.
package struct NodeRecord: Sendable, Hashable {
  package struct Flags: OptionSet, Sendable, Hashable {
    package let rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }
    package static let zoneRoot = Flags(rawValue: 1)
    package static let pointer = Flags(rawValue: 2)
    package static let hasContent = Flags(rawValue: 4)
    package static let burn = Flags(rawValue: 8)
    package static let dataBy = Flags(rawValue: 16)
    static let known: UInt16 = 31
  }

  /// The public part of a node's content.
  package struct Content: Sendable, Hashable {
    package var dataVersion: UInt64
    package var blobID: BlobID
    package var cipherLength: UInt64
    package var contentRoot: ContentRoot

    package init(dataVersion: UInt64, blobID: BlobID, cipherLength: UInt64, contentRoot: ContentRoot) {
      self.dataVersion = dataVersion
      self.blobID = blobID
      self.cipherLength = cipherLength
      self.contentRoot = contentRoot
    }
  }

  /// The author of the content, if it is not this version's writer.
  package struct DataAuthor: Sendable, Hashable {
    package var writer: UserID
    package var timeMs: UInt64

    package init(writer: UserID, timeMs: UInt64) {
      self.writer = writer
      self.timeMs = timeMs
    }
  }

  package struct ZoneCommitments: Sendable, Hashable {
    package var node: KeyCommitment
    package var content: KeyCommitment

    package init(node: KeyCommitment, content: KeyCommitment) {
      self.node = node
      self.content = content
    }
  }

  /// All fields of a record. The flags follow from which optional fields are set.
  package struct Fields: Sendable, Hashable {
    package var tree: TreeID
    package var node: NodeID
    package var parent: NodeID
    package var recordVersion: UInt64
    package var prevRecord: RecordHash
    package var keyGen: UInt32
    package var parentKeyGen: UInt32
    package var parentWrap: [UInt8]
    package var historyWrap: [UInt8]
    package var nameTag: NameTag
    package var isPointer: Bool
    package var commitments: ZoneCommitments?
    package var content: Content?
    package var dataAuthor: DataAuthor?
    package var burnMs: UInt64?
    /// The sealed private part.
    package var sealedPrivate: [UInt8]
    package var writer: UserID
    package var writerGen: UInt32
    package var timeMs: UInt64

    package init(
      tree: TreeID, node: NodeID, parent: NodeID, recordVersion: UInt64, prevRecord: RecordHash, keyGen: UInt32,
      parentKeyGen: UInt32, parentWrap: [UInt8], historyWrap: [UInt8], nameTag: NameTag, isPointer: Bool = false,
      commitments: ZoneCommitments? = nil, content: Content? = nil, dataAuthor: DataAuthor? = nil,
      burnMs: UInt64? = nil, sealedPrivate: [UInt8], writer: UserID, writerGen: UInt32, timeMs: UInt64
    ) {
      self.tree = tree
      self.node = node
      self.parent = parent
      self.recordVersion = recordVersion
      self.prevRecord = prevRecord
      self.keyGen = keyGen
      self.parentKeyGen = parentKeyGen
      self.parentWrap = parentWrap
      self.historyWrap = historyWrap
      self.nameTag = nameTag
      self.isPointer = isPointer
      self.commitments = commitments
      self.content = content
      self.dataAuthor = dataAuthor
      self.burnMs = burnMs
      self.sealedPrivate = sealedPrivate
      self.writer = writer
      self.writerGen = writerGen
      self.timeMs = timeMs
    }

    package var flags: Flags {
      var flags: Flags = []
      if commitments != nil { flags.insert(.zoneRoot) }
      if isPointer { flags.insert(.pointer) }
      if content != nil { flags.insert(.hasContent) }
      if burnMs != nil { flags.insert(.burn) }
      if dataAuthor != nil { flags.insert(.dataBy) }
      return flags
    }

    package var bytes: [UInt8] {
      var out = ByteWriter(magic: "ZDNR", capacity: 400 + parentWrap.count + historyWrap.count + sealedPrivate.count)
      out.append(flags.rawValue)
      out.append(tree)
      out.append(node)
      out.append(parent)
      out.append(recordVersion)
      out.append(prevRecord)
      out.append(keyGen)
      out.append(parentKeyGen)
      out.append16(parentWrap)
      out.append16(historyWrap)
      out.append(nameTag)
      writeOptionalFields(&out)
      out.append32(sealedPrivate)
      out.append(writer)
      out.append(writerGen)
      out.append(timeMs)
      return out.bytes
    }

    private func writeOptionalFields(_ out: inout ByteWriter) {
      if let commitments {
        out.append(commitments.node)
        out.append(commitments.content)
      }
      if let content {
        out.append(content.dataVersion)
        out.append(content.blobID)
        out.append(content.cipherLength)
        out.append(content.contentRoot)
      }
      if let dataAuthor {
        out.append(dataAuthor.writer)
        out.append(dataAuthor.timeMs)
      }
      if let burnMs { out.append(burnMs) }
    }
  }

  package let fields: Fields
  /// The received bytes, over which the hash is computed.
  package let bytes: [UInt8]
  package let hash: RecordHash

  /// Encodes fields that this process created.
  package init(_ fields: Fields) {
    self.fields = fields
    bytes = fields.bytes
    hash = RecordHash(labelledHash: "record", bytes)
  }

  /// Decodes received bytes and checks size, canonical form, version, suite and flags.
  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    try require(bytes.count <= Limits.recordBytes, .limitExceeded)
    var reader = ByteReader(bytes)
    fields = try Self.read(&reader)
    try reader.finish()
    self.bytes = bytes
    hash = RecordHash(labelledHash: "record", bytes)
  }

  private static func read(_ reader: inout ByteReader) throws(ZDCSecurityError) -> Fields {
    try reader.readPreamble(magic: "ZDNR")
    let flags = Flags(rawValue: try reader.readUInt16())
    try require(flags.rawValue & ~Flags.known == 0, .unsupportedVersion)
    try require(!flags.contains(.dataBy) || flags.contains(.hasContent), .nonCanonicalEncoding)
    return Fields(
      tree: try reader.read32(), node: try reader.read16(), parent: try reader.read16(),
      recordVersion: try reader.readUInt64(), prevRecord: try reader.read32(),
      keyGen: try reader.readUInt32(), parentKeyGen: try reader.readUInt32(),
      parentWrap: Array(try reader.readVariable16()),
      historyWrap: Array(try reader.readVariable16(limit: Limits.historyWrapBytes)),
      nameTag: try reader.read16(), isPointer: flags.contains(.pointer),
      commitments: flags.contains(.zoneRoot)
        ? ZoneCommitments(node: try reader.read32(), content: try reader.read32()) : nil,
      content: flags.contains(.hasContent) ? try readContent(&reader) : nil,
      dataAuthor: flags.contains(.dataBy)
        ? DataAuthor(writer: try reader.read32(), timeMs: try reader.readUInt64()) : nil,
      burnMs: flags.contains(.burn) ? try reader.readUInt64() : nil,
      sealedPrivate: Array(try reader.readVariable32(limit: Limits.recordPrivateBytes)),
      writer: try reader.read32(), writerGen: try reader.readUInt32(), timeMs: try reader.readUInt64())
  }

  private static func readContent(_ reader: inout ByteReader) throws(ZDCSecurityError) -> Content {
    let content = Content(
      dataVersion: try reader.readUInt64(), blobID: try reader.read16(), cipherLength: try reader.readUInt64(),
      contentRoot: try reader.read32())
    try require(content.cipherLength <= Limits.contentCipherBytes, .limitExceeded)
    try require(content.cipherLength >= ContentGeometry.sealedLength(of: 64), .nonCanonicalEncoding)
    return content
  }
}

extension NodeRecord {
  /// The text that identifies a version of a record in the API (PROTOCOL 3.13).
  package var eTag: String { Bytes16<RecordHashRole>(prefixOf: hash).text }
}

extension NodeRecord.Content {
  /// The text that identifies a version of content in the API (PROTOCOL 3.13).
  package var eTag: String {
    Bytes16<ContentRootRole>(prefixOf: ContentRoot(labelledHash: "etag", blobID.bytes, contentRoot.bytes)).text
  }
}
