/// The kind of change to a node in the cloud. If both kinds changed, there are two calls.
///
/// ```swift
/// func didDiscoverModifiedNode(
///   _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
/// ) {
///   if change != .treesystem { askToDownload(node) }
/// }
/// ```
public enum ZDCNodeChange: String, Sendable, Hashable, CaseIterable {
  /// Access, burn date or keys. Changes of name or place are reported as a move.
  case treesystem
  /// The content that an app stored.
  case data
}
