package import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// The kind of a file that the disk manager keeps.
package enum DiskKind: Int64, Sendable, Hashable, CaseIterable {
  case nodeData = 0
  case nodeThumbnail = 1
  case userAvatar = 2
}

/// The owner of a file.
package struct DiskOwner: Sendable, Hashable {
  package var kind: DiskKind
  /// A node's uuid, or a userID.
  package var id: String
  /// The identity that an avatar belongs to; nil for the user's main avatar, and for nodes.
  package var identity: String?

  package static func data(_ nodeID: String) -> DiskOwner { DiskOwner(kind: .nodeData, id: nodeID) }
  package static func thumbnail(_ nodeID: String) -> DiskOwner { DiskOwner(kind: .nodeThumbnail, id: nodeID) }
  package static func avatar(_ userID: String, _ identity: String?) -> DiskOwner {
    DiskOwner(kind: .userAvatar, id: userID, identity: identity)
  }
}

/// A row of zdc_disk_file.
package struct DiskFileRow: Sendable {
  package enum AfterUpload: Int64, Sendable {
    case nothing = 0
    case migrate = 1
    case delete = 2
  }

  /// A file, and the secrets and hashes that open it.
  package struct File: Sendable {
    package var name: String
    package var format: ZDCCryptoFileFormat
    package var reference: ContentReference
    /// Hashes of the leaves, as read from the table; empty for a single leaf.
    package var leaves: [UInt8]

    package var size: UInt64 { reference.layout.cipherLength }
  }

  package var id: Int64 = 0
  package var owner: DiskOwner
  /// The file; nil if it is known that there is none.
  package var file: File?
  package var isPersistent: Bool
  package var afterUpload: AfterUpload = .nothing
  /// Maximum time in the cache, in milliseconds; nil for no limit.
  package var lifetimeMs: UInt64?
  /// When the file leaves the cache; nil while it is stored persistently or has no lifetime.
  package var expiresMs: UInt64?
  package var used: UInt64 = 0
  package var eTag: String?
  /// The version of the node's content in the cloud when the file was stored.
  package var contentETag: String?

  func isExpired(nowMs: UInt64) -> Bool { expiresMs.map { $0 <= nowMs } ?? false }
}

// MARK: The sealed value

extension DiskFileRow {
  package struct Secrets {
    package var eTag: String?
    package var contentETag: String?
    package var identity: String?
    package var file: (format: ZDCCryptoFileFormat, reference: ContentReference)?

    package func encoded() -> [UInt8] {
      var out = ByteWriter(capacity: 192)
      out.append(UInt8(2))
      Self.append(eTag, to: &out)
      Self.append(contentETag, to: &out)
      Self.append(identity, to: &out)
      out.append(file != nil)
      if let file { Self.append(file.format, file.reference, to: &out) }
      return out.bytes
    }

    private static func append(_ text: String?, to out: inout ByteWriter) {
      out.append(text != nil)
      if let text { out.append32(Array(text.utf8)) }
    }

    private static func append(
      _ format: ZDCCryptoFileFormat, _ reference: ContentReference, to out: inout ByteWriter
    ) {
      let (content, secrets) = (reference.content, reference.secrets)
      out.append(UInt8(format.rawValue))
      out.append(content.dataVersion)
      out.append(content.blobID)
      out.append(content.cipherLength)
      out.append(content.contentRoot)
      out.append(contentsOf: secrets.key.exportBytes())
      out.append(secrets.sizes.metadata)
      out.append(secrets.sizes.thumbnail)
      out.append(secrets.sizes.data)
      out.append(secrets.thumbnailTag)
    }

    package init(eTag: String?, contentETag: String?, identity: String?, file: DiskFileRow.File?) {
      self.eTag = eTag
      self.contentETag = contentETag
      self.identity = identity
      self.file = file.map { ($0.format, $0.reference) }
    }

    package init(decoding bytes: [UInt8]) throws {
      var reader = ByteReader(bytes)
      let version = try reader.readUInt8()
      guard 1...2 ~= version else { throw ZDCError(.corruptDatabase) }
      eTag = try Self.readText(&reader)
      contentETag = version == 1 ? nil : try Self.readText(&reader)
      identity = try Self.readText(&reader)
      file = try reader.readBool() ? try Self.readFile(&reader) : nil
      try reader.finish()
    }

    private static func readText(_ reader: inout ByteReader) throws -> String? {
      guard try reader.readBool() else { return nil }
      return String(decoding: try reader.readVariable32(limit: reader.remaining), as: UTF8.self)
    }

    private static func readFile(
      _ reader: inout ByteReader
    ) throws -> (format: ZDCCryptoFileFormat, reference: ContentReference) {
      guard let format = ZDCCryptoFileFormat(rawValue: Int(try reader.readUInt8())) else {
        throw ZDCError(.corruptDatabase)
      }
      let version = try reader.readUInt64()
      let blob: BlobID = try reader.read16()
      let length = try reader.readUInt64()
      let root: ContentRoot = try reader.read32()
      guard let key = ContentKey(try reader.read(count: 32)) else { throw ZDCError(.corruptDatabase) }
      let metadata = try reader.readUInt32()
      let thumbnail = try reader.readUInt32()
      let sizes = ContentSizes(metadata: metadata, thumbnail: thumbnail, data: try reader.readUInt64())
      let secrets = ContentSecrets(key: key, sizes: sizes, thumbnailTag: try reader.read16())
      let content = NodeRecord.Content(
        dataVersion: version, blobID: blob, cipherLength: length, contentRoot: root)
      return (format, try ContentReference(content: content, secrets: secrets))
    }
  }
}
