import Foundation
import Testing
import ZeroDarkCloud

/// The examples of the article "Conflicts and merging", as an app would have them.
final class ConflictsArticle: Sendable {
  struct Recipe: ZDCRecord, Codable, Equatable {
    @Syncable var title: String
    @Syncable var minutes = 0
    var ingredients: ZDCOrderedSet<String> = []

    static var syncableFields: [ZDCField<Recipe>] {
      [ZDCField("title", \._title), ZDCField("minutes", \._minutes), ZDCField("ingredients", \.ingredients)]
    }
  }

  let zdc: ZeroDarkCloud

  init(zdc: ZeroDarkCloud) { self.zdc = zdc }

  func queueing(
    _ cloud: ZDCCloudTransaction, _ transaction: ZDCReadWriteTransaction, _ recipe: inout Recipe, key: String,
    nodeID: String
  ) throws {
    recipe.ingredients.append("salt")
    let changeset = try recipe.changeset()
    transaction.setObject(recipe, forKey: key, inCollection: "recipes")
    cloud.queueDataUpload(forNodeID: nodeID, withChangeset: changeset)
  }

  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {
    guard conflict == .data else { return }
    let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
    cloud?.markNodeAsNeedsDownload(node.uuid, components: .data)
  }

  func merging(
    _ connection: ZDCDatabaseConnection, _ node: ZDCNode, cloudVersion: Recipe, eTag: String
  ) async throws {
    let zdc = zdc
    try await connection.write { transaction in
      guard
        let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID),
        let link = cloud.linkedCollectionAndKey(forNodeID: node.uuid),
        var recipe = cloud.linkedObject(forNodeID: node.uuid) as? Recipe
      else { return }
      let report = try recipe.mergeReporting(
        cloudVersion: cloudVersion, pendingChangesets: cloud.pendingChangesets(forNodeID: node.uuid))
      transaction.setObject(recipe, forKey: link.key, inCollection: link.collection)
      cloud.didMergeData(withETag: eTag, forNodeID: node.uuid, report: report)
      cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .data, ifETagMatches: eTag)
    }
  }

  func yielding(_ cloud: ZDCCloudTransaction, _ node: ZDCNode, mine: Data) {
    cloud.skipDataUploads(forNodeID: node.uuid, losing: mine)
  }

  func journal(_ cloud: ZDCCloudReadTransaction, _ node: ZDCNode) {
    for entry in cloud.mergeJournal(forNodeID: node.uuid) where entry.undoneAt == nil {
      print("\(entry.date): \(entry.kind)")
    }
  }

  func takingBack(
    _ cloud: ZDCCloudTransaction, _ transaction: ZDCReadWriteTransaction, _ entry: ZDCMergeJournalEntry, key: String
  ) throws {
    let undo = try cloud.undo(entry)
    if let changeset = undo.changeset, var recipe = cloud.linkedObject(forNodeID: undo.nodeID) as? Recipe {
      let redo = try recipe.undo(changeset)
      transaction.setObject(recipe, forKey: key, inCollection: "recipes")
      cloud.queueDataUpload(forNodeID: undo.nodeID, withChangeset: redo)
    }
  }

  func undoing(_ recipe: inout Recipe, _ changeset: ZDCChangeset) throws -> ZDCChangeset {
    let redo = try recipe.undo(changeset)
    return redo
  }

  func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {
    let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
    for nodeID in dirtyAncestors { cloud?.queueDataUpload(forNodeID: nodeID, withChangeset: nil) }
  }

  func restoring(_ session: ZDCSession, _ node: ZDCNode) async throws {
    let versions = try await session.syncManager.versions(ofNodeID: node.uuid, localUserID: node.localUserID)
    if let version = versions.first(where: { $0.isContentKept }) {
      try await session.syncManager.restore(version, localUserID: node.localUserID)
    }
  }

  func restoring(_ session: ZDCSession, _ user: ZDCLocalUser, _ path: ZDCTreesystemPath) async throws {
    for deleted in try await session.syncManager.deletedNodes(localUserID: user.uuid) where deleted.path == path {
      try await session.syncManager.restore(deleted, localUserID: user.uuid)
    }
  }
}

@Suite struct ConflictsArticleTests {
  typealias Recipe = ConflictsArticle.Recipe

  @Test func noPropertyIsForgotten() {
    #expect(Recipe.unlistedFields(of: Recipe(title: "any")) == [])
  }
}
