import Foundation
import ZeroDarkCloud

// README.md's code, so that it compiles; `DocumentTests` compares the two line by line. It is not run: it needs a
// server.

private final class Notes: ZeroDarkCloudDelegate {
  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData {
    ZDCData(data: Data("the text of the note".utf8))
  }
  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}
  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    print("new on another device: \(path)")
  }
  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {}
  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}
  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {}
  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}
}

private func readmeExample() async throws {
  let config = ZDCConfig(primaryTreeID: "com.example.notes", serverURL: URL(string: "http://127.0.0.1:7342")!)
  let zdc = try ZeroDarkCloud(delegate: Notes(), config: config)
  let keys = zdc.databaseKeyManager
  let key = try keys.isConfigured ? keys.unlock() : keys.createKey()
  try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))

  let (user, words) = try await zdc.localUserManager!.createAccount()  // 24 words: all that another device needs
  try await zdc.databaseManager!.rwDatabaseConnection.write { transaction in
    let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user.uuid)
    try cloud?.createNode(withPath: ZDCTreesystemPath(pathComponents: ["first note"]))
  }  // the node, its upload and whatever else this block writes are committed together
  _ = words
}
