import Foundation
import ZeroDarkCloud

/// The example of the article "Transactions", as an app would have it.
final class TransactionsArticle: Sendable {
  struct Item: Codable, Sendable { var id = "" }

  let zdc: ZeroDarkCloud
  let localUserID: String

  init(zdc: ZeroDarkCloud, localUserID: String) {
    self.zdc = zdc
    self.localUserID = localUserID
  }

  func one(_ task: Item, _ path: ZDCTreesystemPath) async throws {
    let (zdc, localUserID) = (zdc, localUserID)
    try await zdc.databaseManager?.rwDatabaseConnection.write { transaction in
      transaction.setObject(task, forKey: task.id, inCollection: "tasks")
      if let cloud = zdc.cloudTransaction(transaction, forLocalUserID: localUserID) {
        let node = try cloud.createNode(withPath: path)
        try cloud.linkNodeID(node.uuid, toKey: task.id, inCollection: "tasks")
      }
    }
  }
}
