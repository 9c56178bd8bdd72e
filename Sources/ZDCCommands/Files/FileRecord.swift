/// What this profile knows of the file behind a node; the app's own object, in collection ``collection`` under the
/// node's uuid, linked to the node.
///
/// It is written in the transaction that queues the upload, so a rerun of `put` can tell what has changed without
/// asking the server.
package struct FileRecord: Sendable, Hashable, Codable {
  package static let collection = "zdc.files"

  package var kind: FileMetadata.Kind
  /// Where the bytes are until they were sent: an absolute path. Nil for a folder.
  package var source: String?
  /// Whether the source is a file that `get` wrote: good for a server that lost it, as long as nobody changed it.
  package var isCopy: Bool?
  /// Whether the source is a copy of our own, to be deleted once it was sent.
  package var isSpooled = false
  package var size: UInt64
  package var mode: UInt16
  package var time: FileTime
  /// Which state of the source was sent; nil if that is not known.
  package var stamp: FileStamp?
  /// The content in the cloud that this describes; nil until it was sent.
  package var eTag: String?

  package init(
    _ metadata: FileMetadata, size: UInt64, source: String? = nil, eTag: String? = nil, isCopy: Bool? = nil
  ) {
    kind = metadata.kind
    mode = metadata.mode
    time = metadata.time
    self.size = metadata.kind == .file ? size : 0
    self.source = source
    self.isCopy = isCopy
    self.eTag = eTag
  }

  package var metadata: FileMetadata { FileMetadata(kind: kind, mode: mode, time: time) }

  /// Whether a file with these facts is the one that the record describes.
  package func describes(_ facts: FileFacts) -> Bool {
    guard facts.metadata == metadata else { return false }
    return kind == .folder || facts.size == size
  }

  /// Whether that file is the very one, unchanged: another one may have the same size and time.
  package func isProvenSame(_ facts: FileFacts) -> Bool {
    kind == .folder || (stamp != nil && stamp == facts.stamp)
  }
}
