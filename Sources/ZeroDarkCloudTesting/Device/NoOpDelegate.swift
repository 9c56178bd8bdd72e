public import Foundation
public import ZDCTreesystem
public import ZeroDarkCloud

/// A delegate that does nothing, with only the required methods. Every node is uploaded with empty content.
///
/// Use it for tests of code that needs a ``ZeroDarkCloud`` object but no content. ``RecordingDelegate`` records calls.
///
/// ```swift
/// let zdc = try ZeroDarkCloud(delegate: NoOpDelegate(), config: config)
/// ```
public final class NoOpDelegate: ZeroDarkCloudDelegate {
  /// Creates a delegate.
  public init() {}

  /// Returns no bytes, which the framework uploads as the node's content.
  public func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData {
    ZDCData(data: Data())
  }

  /// Does nothing.
  public func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}

  /// Does nothing.
  public func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}

  /// Does nothing.
  public func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {}

  /// Does nothing.
  public func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}

  /// Does nothing.
  public func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {}

  /// Does nothing. The framework's resolution of the conflict remains.
  public func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}
}
