internal import ZDCTreesystem

// Links while their nodes go away. Filled in with ZDCCloudTransaction+Links.

extension ZDCReadWriteTransaction {
  /// Before a node that was deleted in the cloud is removed here: its links, and those below, stay findable until ``endRemoval()``, so that
  /// the app can look them up while it is told.
  func unlinkBeforeRemoval(of row: NodeRow, keepLookups: Bool) throws {
    guard keepLookups else { return }
    cloudState.removedLinks = try links.links(atOrBelow: row.id)
  }

  func endRemoval() throws {
    cloudState.removedLinks = []
  }
}
