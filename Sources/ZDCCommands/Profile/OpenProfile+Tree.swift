internal import ZeroDarkCloud

extension OpenProfile {
  func cloud(_ transaction: ZDCReadTransaction, _ user: String) throws -> ReadableTree {
    guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user) else {
      throw ZDCError(.localUserNotFound)
    }
    return ReadableTree(cloud, transaction)
  }

  func cloud(_ transaction: ZDCReadWriteTransaction, _ user: String) throws -> WritableTree {
    guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user) else {
      throw ZDCError(.localUserNotFound)
    }
    return WritableTree(cloud, transaction)
  }
}
