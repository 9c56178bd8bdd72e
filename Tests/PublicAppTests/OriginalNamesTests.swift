import Foundation
import Synchronization
import Testing
import ZDCMerge
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Names and behaviour of the original framework that its apps rely on, used as an app without package access would.
struct OriginalNamesTests {
  /// A model as apps of the original framework have it: a class that is not sendable.
  final class Entry: Codable {
    var title: String

    init(_ title: String) { self.title = title }
  }

  private func device(_ body: @Sendable (TestDevice, String) async throws -> Void) async throws {
    try await TestWorld.run { world in
      let device = try await world.device("A")
      try await body(device, try device.localUserID)
      world.mayWait(device)
    }
  }

  @Test("O-b: a class that is not sendable can be registered, stored and read")
  func classModels() async throws {
    var config = ZDCDatabaseConfig(encryptionKey: Data(count: 32))
    config.register(Entry.self, inCollection: "entries")
    try await device { device, _ in
      try await device.database.write { transaction in
        transaction.setObject(Entry("milk"), forKey: "1", inCollection: "entries")
      }
      let title = try await device.database.read { transaction in
        try transaction.object(Entry.self, forKey: "1", inCollection: "entries")?.title
      }
      #expect(title == "milk")
    }
  }

  @Test("O-b: nodes and users are found without their local user, and in the original's collections")
  func lookups() async throws {
    try await device { device, user in
      let node = try await device.create("/list", "x")
      try await device.database.read { transaction in
        #expect(transaction.node(id: node.uuid) == node)
        #expect(transaction.object(forKey: node.uuid, inCollection: kZDCCollection_Nodes) as? ZDCNode == node)
        #expect(transaction.user(id: user)?.isLocal == true)
        #expect(transaction.user(id: kZDCAnonymousUserID) == nil)
        #expect(transaction.localUser(id: user)?.uuid == user)
        let local = transaction.object(forKey: user, inCollection: kZDCCollection_Users) as? ZDCLocalUser
        #expect(local?.uuid == user)
        #expect(transaction.hasObject(forKey: node.uuid, inCollection: kZDCCollection_Nodes))
        #expect(!transaction.hasObject(forKey: "unknown", inCollection: kZDCCollection_Users))
        #expect(transaction.node(id: "unknown") == nil && transaction.localUser(id: "unknown") == nil)
      }
    }
  }

  @Test("O-b: an object that is stored in place of a node is refused: it could not be read again")
  func frameworksCollections() async throws {
    try await device { device, _ in
      let refusal = await #expect(throws: ZDCError.self) {
        try await device.database.write { $0.setObject(Entry("milk"), forKey: "1", inCollection: kZDCCollection_Nodes) }
      }
      #expect(refusal?.code == .collectionTypeMismatch)
    }
  }

  @Test("O-b: the node manager is there without unwrapping, and its look-ups need no try")
  func nodeManager() async throws {
    try await device { device, user in
      let list = try await device.create("/list", "x")
      let task = try await device.create("/list/task", "y")
      let zdc = try device.zdc
      try await device.database.read { transaction in
        let manager: ZDCNodeManager = zdc.nodeManager
        #expect(zdc.nodeManager.path(for: task, transaction: transaction)?.fullPath() == "home:/list/task")
        #expect(zdc.nodeManager?.hasChildren(list, transaction: transaction) == true)
        #expect(manager.findNode(withName: "task", parentID: list.uuid, transaction: transaction) == task)
        var seen: [String] = []
        manager.recursiveEnumerateNodeIDs(withParentID: list.uuid, transaction: transaction) {
          nodeID, path, recurseInto, stop in
          seen.append(nodeID)
          recurseInto = false
          stop = !path.isEmpty
        }
        #expect(seen == [task.uuid])
        #expect(zdc.localUserManager?.anyLocalUser(transaction)?.uuid == user)
        zdc.localUserManager?.enumerateLocalUserIDs(transaction) { id, stop in
          #expect(id == user)
          stop = true
        }
      }
    }
  }

  @Test("O-b: the database's calls: touch, iterate, remove several, write with a completion block")
  func databaseCalls() async throws {
    try await device { device, _ in
      let connection = try device.database
      await withCheckedContinuation { continuation in
        connection.asyncReadWrite(
          { transaction in
            for key in ["1", "2", "3"] {
              transaction.setObject(TestContent(key), forKey: key, inCollection: TestContent.collection)
            }
          }, completionQueue: .global(), completionBlock: { continuation.resume() })
      }
      try await connection.write { transaction in
        transaction.touchObject(forKey: "1", inCollection: TestContent.collection)
        transaction.touchObject(forKey: "unknown", inCollection: TestContent.collection)
        transaction.removeObjects(forKeys: ["2", "3"], inCollection: TestContent.collection)
        var keys: [String] = []
        transaction.iterateKeysAndObjects(inCollection: TestContent.collection) { key, object, _ in
          #expect(object as? TestContent == TestContent(key))
          keys.append(key)
        }
        #expect(keys == ["1"])
        #expect(transaction.hasObject(forKey: "1", inCollection: TestContent.collection))
      }
    }
  }

  @Test("O-b: the cloud transaction's calls: move, linkedObject(for:), hasChildren")
  func cloudCalls() async throws {
    try await device { device, user in
      let node = try await device.create("/a", "x")
      try await device.write { transaction, cloud in
        transaction.setObject(TestContent("linked"), forKey: "k", inCollection: TestContent.collection)
        try cloud.linkNodeID(node.uuid, toKey: "k", inCollection: TestContent.collection)
        let path = ZDCTreesystemPath(pathComponents: ["b"])
        try cloud.move(node, to: path)
        #expect(cloud.linkedObject(for: path) as? TestContent == TestContent("linked"))
        #expect(!cloud.hasChildren(node))
        try cloud.delete(node)
      }
      let zdc = try device.zdc
      try await device.database.write { transaction in
        zdc.localUserManager?.deleteLocalUser(user, transaction: transaction)
        #expect(transaction.localUser(id: user) == nil)
      }
    }
  }

  @Test("O-b: the notification has its Swift name, and reachability a block")
  func notifications() async throws {
    #expect(Notification.Name.ZDCSyncStatusChanged.rawValue == "ZDCSyncStatusChangedNotification")
    try await device { device, _ in
      let states = AsyncStream.makeStream(of: Bool.self)
      try device.zdc.reachability.setReachabilityStatusChange { states.continuation.yield($0) }
      try await device.whileRunning {
        var iterator = states.stream.makeAsyncIterator()
        #expect(await iterator.next() == true)
      }
    }
  }

  @Test("O-b: ZDCSyncable's names, and indexes that are too large mean the end")
  func syncableNames() throws {
    var array: ZDCArray = ["a", "b", "c"]
    array.move(fromIndex: 0, toIndex: 9)
    array.remove("b")
    #expect(array.rawArray == ["c", "a"])
    var set: ZDCOrderedSet = ["a", "b", "c"]
    set.insert("d")
    set.insert("e", at: 9)
    set.move(fromIndex: 0, toIndex: 9)
    #expect(set.remove(at: 0) == "b")
    #expect(set.rawOrder == ["c", "d", "e", "a"] && set.index(of: "e") == 2 && set.index(of: "x") == nil)
    var dictionary: ZDCOrderedDictionary = ["a": 1, "b": 2]
    #expect(dictionary.insert(3, forKey: "c", atIndex: 9) == 2)
    #expect(dictionary.insert(0, forKey: "z", atIndex: 0) == 0)
    dictionary.move(fromIndex: 0, toIndex: 9)
    #expect(dictionary.rawOrder == ["a", "b", "c", "z"] && dictionary.orderedValues == [1, 2, 3, 0])
    #expect(dictionary.keyAtIndex(1) == "b" && dictionary.valueAtIndex(1) == 2 && dictionary.index(ofKey: "c") == 2)
    #expect(dictionary.keyAtIndex(9) == nil)
    #expect(dictionary.remove(at: 0) == 1)
    let changeset = try dictionary.changeset() ?? [:]
    #expect(try dictionary.undo(changeset) != [:])
  }
}
