import Foundation
import ZeroDarkCloud

/// The examples of the article "Mapping", as an app would have them.
final class MappingArticle: Sendable {
  struct Photo: Sendable { var id: Int64 = 0 }

  let zdc: ZeroDarkCloud
  let key: Data

  init(zdc: ZeroDarkCloud, key: Data) {
    self.zdc = zdc
    self.key = key
  }

  func linking(
    _ cloud: ZDCCloudTransaction, _ transaction: ZDCReadWriteTransaction, _ path: ZDCTreesystemPath, _ task: Task
  ) throws -> ZDCNode {
    let node = try cloud.createNode(withPath: path)
    transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
    try cloud.linkNodeID(node.uuid, toKey: task.uuid, inCollection: "tasks")
    return node
  }

  func finding(_ cloud: ZDCCloudReadTransaction, _ node: ZDCNode, taskID: String) -> [Any?] {
    let task = cloud.linkedObject(forNodeID: node.uuid) as? Task
    let nodeID = cloud.linkedNodeID(forKey: taskID, inCollection: "tasks")
    let place = cloud.linkedCollectionAndKey(forNodeID: node.uuid)
    return [task, nodeID, place]
  }

  func registering() throws {
    var database = ZDCDatabaseConfig(encryptionKey: key)
    database.register(Task.self, inCollection: "tasks")
    try zdc.unlockOrCreateDatabase(database)
  }

  func tagging(_ cloud: ZDCCloudTransaction, _ node: ZDCNode, _ row: Photo) -> Int64? {
    cloud.setTag(row.id, forNodeID: node.uuid, withIdentifier: "row")
    let rowID = cloud.tag(forNodeID: node.uuid, withIdentifier: "row") as? Int64
    return rowID
  }

  func ownTables() -> ZDCDatabaseConfig {
    let config = ZDCDatabaseConfig(encryptionKey: key) { migrator in
      migrator.registerMigration("photos") { db in
        try db.create(table: "photo") { table in
          table.autoIncrementedPrimaryKey("id")
          table.column("title", .text)
        }
      }
    }
    return config
  }

  func byPath(_ path: ZDCTreesystemPath, _ content: Data) {
    switch path.pathComponents.count {
    case 1: store(list: content, id: path.nodeName)
    case 2: store(task: content, id: path.nodeName)
    default: break
    }
  }

  private func store(list: Data, id: String) {}
  private func store(task: Data, id: String) {}
}
