/// Content of another node that a put in a commit request attaches to its own node (PROTOCOL 4.4).
package struct AttachedContent: Sendable, Hashable {
  /// The node that has the content now.
  package var tree: TreeID
  package var node: NodeID
  package var blob: BlobID

  package init(tree: TreeID, node: NodeID, blob: BlobID) {
    self.tree = tree
    self.node = node
    self.blob = blob
  }

  init(_ reader: inout ByteReader) throws(ZDCSecurityError) {
    tree = try reader.read32()
    node = try reader.read16()
    blob = try reader.read16()
    try reader.finish()
  }

  var bytes: [UInt8] { tree.bytes + node.bytes + blob.bytes }
}
