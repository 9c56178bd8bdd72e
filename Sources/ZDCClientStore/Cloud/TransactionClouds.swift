extension ZDCReadTransaction {
  package func cloud(forLocalUserID localUserID: String, treeID: String) -> ZDCCloudReadTransaction? {
    let id = poisoning { try cloudState.localUser(localUserID, treeID: treeID) } ?? nil
    return id.map { ZDCCloudReadTransaction(self, localUserID: localUserID, localUser: $0, treeID: treeID) }
  }
}

extension ZDCReadWriteTransaction {
  package func writableCloud(forLocalUserID localUserID: String, treeID: String) -> ZDCCloudTransaction? {
    let id = poisoning { try cloudState.localUser(localUserID, treeID: treeID) } ?? nil
    return id.map { ZDCCloudTransaction(self, localUserID: localUserID, localUser: $0, treeID: treeID) }
  }
}
