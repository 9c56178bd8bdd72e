/// The bulk format for objects: a sequence of `u8 type ‖ u32 length ‖ bytes` (PROTOCOL 3.13).
package enum Bundle {
  package static let mediaType = "application/vnd.zdc.bundle"

  package enum ItemType: UInt8, Sendable {
    case commit = 1, record = 2, acl = 3, grant = 4, content = 5, link = 6, leaves = 7, aclEdit = 8, attach = 9
    case envelope = 10

    var limit: Int {
      switch self {
      case .commit: Limits.commitBytes + 8
      case .record: Limits.recordBytes + 16
      case .acl: Limits.aclBytes
      case .grant: Limits.grantBytes
      case .content: Limits.inlineContentBytes + 16
      case .link: Limits.linkBytes
      case .leaves: Limits.pageBytes
      case .aclEdit: Limits.aclEditBytes
      case .attach: 64
      case .envelope: Limits.envelopeBytes
      }
    }
  }

  /// A decoded item. Times are set by the server; they are zero in requests.
  package enum Item: Sendable, Hashable {
    case commit(receivedMs: UInt64, ZoneCommit)
    case record(recordReceivedMs: UInt64, dataReceivedMs: UInt64, NodeRecord)
    case acl(ZoneACL)
    case grant(Grant)
    case content(BlobID, ArraySlice<UInt8>)
    case link(IdentityLink)
    case leaves(ArraySlice<UInt8>)
    case aclEdit(ZoneACLEdit)
    case attach(AttachedContent)
    case envelope(MessageEnvelope)
  }

  /// An item, or a placeholder for a record or grant with a wrong format.
  package enum LenientItem: Sendable {
    case item(Item)
    case unreadableRecord(RecordHash, ZDCSecurityError)
    case unreadableGrant
  }

  /// Decodes items one by one from received bytes.
  package struct Reader: Sendable {
    private var reader: ByteReader

    package init(_ bytes: [UInt8]) {
      reader = ByteReader(bytes)
    }

    /// Returns the next item, or nil after the last one. A type that this version does not know is an error, because
    /// nothing may be skipped unread.
    package mutating func next() throws(ZDCSecurityError) -> Item? {
      guard reader.remaining > 0 else { return nil }
      guard let type = ItemType(rawValue: try reader.readUInt8()) else {
        throw ZDCSecurityError(.nonCanonicalEncoding)
      }
      var item = ByteReader(try reader.readVariable32(limit: type.limit))
      return try Self.decode(type, &item)
    }

    /// Like ``next()``, but returns a malformed record or grant as an unreadable item.
    ///
    /// Signed objects name the hashes of records and grants, so the reader can check whether exactly these bytes were
    /// intended.
    package mutating func nextLeniently() throws(ZDCSecurityError) -> LenientItem? {
      guard reader.remaining > 0 else { return nil }
      guard let type = ItemType(rawValue: try reader.readUInt8()) else {
        throw ZDCSecurityError(.nonCanonicalEncoding)
      }
      let bytes = try reader.readVariable32(limit: type.limit)
      var item = ByteReader(bytes)
      do throws(ZDCSecurityError) {
        return .item(try Self.decode(type, &item))
      } catch {
        switch type {
        case .record: return .unreadableRecord(RecordHash(labelledHash: "record", slice: bytes.dropFirst(16)), error)
        case .grant: return .unreadableGrant
        case .commit, .acl, .content, .link, .leaves, .aclEdit, .attach, .envelope: throw error
        }
      }
    }

    /// Returns all remaining items.
    package mutating func all() throws(ZDCSecurityError) -> [Item] {
      var items: [Item] = []
      while let item = try next() { items.append(item) }
      return items
    }

    private static func decode(_ type: ItemType, _ item: inout ByteReader) throws(ZDCSecurityError) -> Item {
      switch type {
      case .commit: return .commit(receivedMs: try item.readUInt64(), try ZoneCommit(try rest(&item)))
      case .record:
        return .record(
          recordReceivedMs: try item.readUInt64(), dataReceivedMs: try item.readUInt64(),
          try NodeRecord(try rest(&item)))
      case .acl: return .acl(try ZoneACL(try rest(&item)))
      case .grant: return .grant(try Grant(try rest(&item)))
      case .content: return .content(try item.read16(), try item.read(count: item.remaining))
      case .link: return .link(try IdentityLink(try rest(&item)))
      case .leaves: return .leaves(try item.read(count: item.remaining))
      case .aclEdit: return .aclEdit(try ZoneACLEdit(try rest(&item)))
      case .attach: return .attach(try AttachedContent(&item))
      case .envelope: return .envelope(try MessageEnvelope(try rest(&item)))
      }
    }

    private static func rest(_ item: inout ByteReader) throws(ZDCSecurityError) -> [UInt8] {
      Array(try item.read(count: item.remaining))
    }
  }

  /// Appends items to a body.
  package struct Writer: Sendable {
    private var out: ByteWriter

    package init(capacity: Int = 0) {
      out = ByteWriter(capacity: capacity)
    }

    package var bytes: [UInt8] { out.bytes }
    package var count: Int { out.bytes.count }

    package mutating func append(commit bytes: [UInt8], receivedMs: UInt64 = 0) {
      begin(.commit, length: 8 + bytes.count)
      out.append(receivedMs)
      out.append(contentsOf: bytes)
    }

    package mutating func append(record bytes: [UInt8], recordReceivedMs: UInt64 = 0, dataReceivedMs: UInt64 = 0) {
      begin(.record, length: 16 + bytes.count)
      out.append(recordReceivedMs)
      out.append(dataReceivedMs)
      out.append(contentsOf: bytes)
    }

    package mutating func append(acl bytes: [UInt8]) { append(.acl, bytes) }
    package mutating func append(grant bytes: [UInt8]) { append(.grant, bytes) }
    package mutating func append(link bytes: [UInt8]) { append(.link, bytes) }
    package mutating func append(aclEdit edit: ZoneACLEdit) { append(.aclEdit, edit.bytes) }
    package mutating func append(envelope bytes: [UInt8]) { append(.envelope, bytes) }
    package mutating func append(attach content: AttachedContent) { append(.attach, content.bytes) }

    package mutating func append(content bytes: some Collection<UInt8>, blob: BlobID) {
      begin(.content, length: 16 + bytes.count)
      out.append(blob)
      out.append(contentsOf: bytes)
    }

    /// Appends items that another writer encoded.
    package mutating func append(items: [UInt8]) {
      out.append(contentsOf: items)
    }

    private mutating func append(_ type: ItemType, _ bytes: [UInt8]) {
      begin(type, length: bytes.count)
      out.append(contentsOf: bytes)
    }

    private mutating func begin(_ type: ItemType, length: Int) {
      out.append(type.rawValue)
      out.append(UInt32(length))
    }
  }
}
