import Foundation
import ZeroDarkCloud

/// The examples of the article "Pull", as an app would have them.
final class PullArticle: Sendable {
  struct Screen: Sendable {
    var visibleFolder: String? { get async { nil } }
  }

  let zdc: ZeroDarkCloud
  let localUserID: String
  let screen = Screen()

  init(zdc: ZeroDarkCloud, localUserID: String) {
    self.zdc = zdc
    self.localUserID = localUserID
  }

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
    cloud?.markNodeAsNeedsDownload(node.uuid, components: .data)
  }

  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {
    guard change == .data else { return }
    let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
    cloud?.markNodeAsNeedsDownload(node.uuid, components: .data)
  }

  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {
    let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
    guard let link = cloud?.linkedCollectionAndKey(forNodeID: node.uuid) else { return }
    transaction.removeObject(forKey: link.key, inCollection: link.collection)
  }

  func downloading(_ downloads: ZDCDownloadManager, _ connection: ZDCDatabaseConnection) async throws {
    let (zdc, localUserID) = (zdc, localUserID)
    for try await download in downloads.downloadMarkedContents(forLocalUserID: localUserID) {
      guard case .success(.memory(let bytes, _, _)) = download.content else { continue }
      let task = try JSONDecoder().decode(Task.self, from: bytes)
      try await connection.write { transaction in
        guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: localUserID) else { return }
        transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
        try cloud.linkNodeID(download.node.uuid, toKey: task.uuid, inCollection: "tasks")
        cloud.unmarkNodeAsNeedsDownload(download.node.uuid, components: .data, ifETagMatches: download.node.eTag_data)
      }
    }
  }

  func preferredNodeIDsForPullingRcrds() async -> Set<String>? {
    await screen.visibleFolder.map { [$0] }
  }

  func showing(_ connection: ZDCDatabaseConnection, show: ([String]) -> Void) async throws {
    for try await titles in connection.values(of: { transaction in
      try transaction.keys(inCollection: "tasks").compactMap { key in
        (transaction.object(forKey: key, inCollection: "tasks") as? Task)?.title
      }
    }) {
      show(titles)
    }
  }

  func announcing(announce: (String) -> Void) async {
    for await case .didDiscoverNewNode(_, at: let path) in zdc.syncManager!.nodeEvents {
      announce("\(path.nodeName) is new")
    }
  }
}
