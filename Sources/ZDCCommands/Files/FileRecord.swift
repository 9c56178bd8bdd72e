/// The profile's local facts about the file behind a node. A record is the app's own object, stored in collection
/// ``collection`` under the node's uuid and linked to the node.
///
/// It is written in the transaction that queues the upload, so a rerun of `put` can detect changes without asking the
/// server.
package struct FileRecord: Sendable, Hashable, Codable {
  package static let collection = "zdc.files"

  package var kind: FileMetadata.Kind
  /// The absolute path of the bytes until they are sent. Nil for a folder.
  package var source: String?
  /// Whether the source is a file that `get` wrote. While unchanged, it can replace content that the server lost.
  package var isCopy: Bool?
  /// Whether the source is our own copy, to be deleted after it is sent.
  package var isSpooled = false
  package var size: UInt64
  package var mode: UInt16
  package var time: FileTime
  /// The state of the source that was sent; nil if unknown.
  package var stamp: FileStamp?
  /// The eTag of the content in the cloud that this describes; nil until it is sent.
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

  /// Whether a file with these attributes is the one that the record describes.
  package func describes(_ facts: FileAttributes) -> Bool {
    guard facts.metadata == metadata else { return false }
    return kind == .folder || facts.size == size
  }

  /// Whether a file with these attributes has the node's content already, so that it need not be fetched. Special bits
  /// are never restored, so they make no difference.
  ///
  /// - Parameter overwriting: Whether the user wants other files of equal size and time replaced.
  package func isHere(_ facts: FileAttributes, overwriting: Bool) -> Bool {
    guard facts.metadata?.withoutSpecialBits == metadata.withoutSpecialBits else { return false }
    return (kind == .folder || facts.size == size) && (!overwriting || isProvenSame(facts))
  }

  /// Whether the file is provably the same, unchanged: another file may have the same size and time.
  package func isProvenSame(_ facts: FileAttributes) -> Bool {
    kind == .folder || (stamp != nil && stamp == facts.stamp)
  }
}
