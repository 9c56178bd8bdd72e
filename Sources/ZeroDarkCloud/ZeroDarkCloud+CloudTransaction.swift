public import ZDCClientStore

extension ZeroDarkCloud {
  /// Reads a local user's tree inside the given transaction.
  ///
  /// - Returns: nil if there is no such local user on this device.
  public func cloudTransaction(
    _ transaction: ZDCReadTransaction, forLocalUserID localUserID: String, treeID: String? = nil
  ) -> ZDCCloudReadTransaction? {
    transaction.cloud(forLocalUserID: localUserID, treeID: treeID ?? primaryTreeID)
  }

  /// Changes a local user's tree, inside the given transaction.
  ///
  /// Nodes, queued operations and the app's own rows commit together. Nothing is sent before the commit is on disk.
  ///
  /// - Returns: nil if there is no such local user on this device.
  public func cloudTransaction(
    _ transaction: ZDCReadWriteTransaction, forLocalUserID localUserID: String, treeID: String? = nil
  ) -> ZDCCloudTransaction? {
    transaction.writableCloud(forLocalUserID: localUserID, treeID: treeID ?? primaryTreeID)
  }
}
