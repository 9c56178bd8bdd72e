public import ZDCClientStore

extension ZeroDarkCloud {
  /// Reads a local user's tree inside the given transaction.
  ///
  /// ``ZDCUserTree`` does this look-up for an app with one user per screen. In a transaction of several users:
  ///
  /// ```swift
  /// let node = try await connection.read { transaction in
  ///   zdc.cloudTransaction(transaction, forLocalUserID: user.uuid)?.node(path: path)
  /// }
  /// ```
  ///
  /// - Returns: nil if there is no such local user on this device, or if the user has no tree with that ID here.
  public func cloudTransaction(
    _ transaction: ZDCReadTransaction, forLocalUserID localUserID: String, treeID: String? = nil
  ) -> ZDCCloudReadTransaction? {
    transaction.cloud(forLocalUserID: localUserID, treeID: treeID ?? primaryTreeID)
  }

  /// Changes a local user's tree, inside the given transaction.
  ///
  /// Nodes, queued operations and the app's own rows commit together. Nothing is sent before the commit is on disk.
  ///
  /// A method of the delegate changes the tree with the transaction that it is given:
  ///
  /// ```swift
  /// func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
  ///   let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  ///   cloud?.setTag(Date(), forNodeID: node.uuid, withIdentifier: "com.example.pushed")
  /// }
  /// ```
  ///
  /// - Returns: nil if there is no such local user on this device, or if the user has no tree with that ID here.
  public func cloudTransaction(
    _ transaction: ZDCReadWriteTransaction, forLocalUserID localUserID: String, treeID: String? = nil
  ) -> ZDCCloudTransaction? {
    transaction.writableCloud(forLocalUserID: localUserID, treeID: treeID ?? primaryTreeID)
  }
}
