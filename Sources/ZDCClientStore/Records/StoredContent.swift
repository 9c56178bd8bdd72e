package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

// How sealed values of the database hold what is known about a node's content.

extension ByteWriter {
  package mutating func append(_ content: NodeRecord.Content) {
    append(content.dataVersion)
    append(content.blobID)
    append(content.cipherLength)
    append(content.contentRoot)
  }

  package mutating func append(_ secrets: ContentSecrets) {
    append(contentsOf: secrets.key.exportBytes())
    append(secrets.sizes.metadata)
    append(secrets.sizes.thumbnail)
    append(secrets.sizes.data)
    append(secrets.thumbnailTag)
  }
}

extension ByteReader {
  package mutating func readContent() throws -> NodeRecord.Content {
    NodeRecord.Content(
      dataVersion: try readUInt64(), blobID: try read16(), cipherLength: try readUInt64(), contentRoot: try read32())
  }

  package mutating func readContentSecrets() throws -> ContentSecrets {
    guard let key = ContentKey(try read(count: 32)) else { throw ZDCError(.corruptDatabase) }
    let metadata = try readUInt32()
    let thumbnail = try readUInt32()
    let sizes = ContentSizes(metadata: metadata, thumbnail: thumbnail, data: try readUInt64())
    return ContentSecrets(key: key, sizes: sizes, thumbnailTag: try read16())
  }
}
