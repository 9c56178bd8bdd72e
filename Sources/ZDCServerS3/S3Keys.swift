internal import ZDCProtocol

/// The names of objects: `c/<blob>` is content, `l/<blob>` its leaf hashes, `p/<blob>/<part>` the leaf hashes of a part
/// while the upload runs.
struct S3Keys: Sendable {
  /// Empty, or with a slash at its end.
  var prefix: String

  /// The object that says to which server the blobs belong.
  var owner: String { prefix + "owner" }
  /// The object that is written to find out whether there is room.
  var room: String { prefix + "room" }
  var contents: String { prefix + "c/" }
  var allLeaves: String { prefix + "l/" }
  var allParts: String { prefix + "p/" }

  func content(_ blob: BlobID) -> String { contents + blob.text }
  func leaves(_ blob: BlobID) -> String { allLeaves + blob.text }
  func parts(_ blob: BlobID) -> String { "\(allParts)\(blob.text)/" }
  func part(_ index: Int, _ blob: BlobID) -> String { parts(blob) + "\(index)" }

  /// Returns the blob that an object belongs to, or nil for other objects.
  func blob(of key: String) -> BlobID? {
    for folder in [contents, allLeaves, allParts] where key.hasPrefix(folder) {
      return BlobID(text: key.dropFirst(folder.count).prefix { $0 != "/" })
    }
    return nil
  }
}
