import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Runs the fragments of the original documentation. Each test names its document.
@Suite struct SeedTests {
  /// Returns a device with the app's types registered and the given delegate.
  func device(
    _ world: TestWorld, delegate: any ZeroDarkCloudDelegate
  ) async throws -> (device: TestDevice, zdc: ZeroDarkCloud, user: String) {
    let device = try await TestDevice("A", server: world.server, clock: world.clock, delegate: delegate) { config in
      config.register(Task.self, inCollection: kCollection_Tasks)
      config.register(List.self, inCollection: kCollection_Lists)
    }
    try await device.createAccount()
    return (device, try device.zdc, try device.localUserID)
  }

  /// Waits for all earlier blocks. Blocks of `asyncReadWrite` run in order, so an empty one runs after them.
  private func wait(_ device: TestDevice) async throws {
    try await device.database.write { _ in }
  }

  func node(_ device: TestDevice, _ path: [String]) async throws -> ZDCNode? {
    let (zdc, user) = (try device.zdc, try device.localUserID)
    return try await device.database.read { transaction in
      zdc.cloudTransaction(transaction, forLocalUserID: user)?.node(path: ZDCTreesystemPath(pathComponents: path))
    }
  }

  @Test func seed000_createLinkTagModifyDelete() async throws {
    try await TestWorld.run { world in
      let (a, zdc, user) = try await device(world, delegate: Seed000Delegate())
      let seed = Seed000(localUserID: user)
      let foo = ZDCTreesystemPath(pathComponents: ["foo"])
      let bar = foo.appendingComponent("bar")
      let task = Task(uuid: "task", title: "old")
      try await a.database.write { transaction in
        let cloud = try #require(zdc.cloudTransaction(transaction, forLocalUserID: user))
        try cloud.createNode(withPath: foo)
        try cloud.createNode(withPath: bar)
        transaction.setObject(task, forKey: task.uuid, inCollection: kCollection_Tasks)
      }
      seed.creatingANode(zdc: zdc)
      #expect(seed.appendingAComponent(parentPath: bar).pathComponents == ["foo", "bar", "soap"])
      seed.creatingAndLinking(zdc: zdc, treesystemPath: bar.appendingComponent("linked"), taskID: task.uuid)
      try await wait(a)
      #expect(try await node(a, ["foo", "bar", "soap"]) != nil)

      let linked = try #require(try await node(a, ["foo", "bar", "linked"]))
      let found = try #require(seed.lookingUpLinks(zdc: zdc, node: linked, taskID: task.uuid))
      #expect(found.collection == "tasks" && found.key == task.uuid && found.task == task && found.node == linked)

      seed.usingTags(zdc: zdc, node: linked, myTask: task)
      try await a.sync()
      #expect(try await a.queueCount() == 0)
      seed.modifyingData(zdc: zdc, textView: TextView(text: "new"), taskID: task.uuid)
      try await wait(a)
      let changed = try await a.database.read { try $0.object(Task.self, forKey: "task", inCollection: "tasks") }
      #expect(changed?.title == "new")
      #expect(try await a.queueCount() == 1)

      seed.deletingANode(zdc: zdc, node: linked)
      try await a.sync()
      #expect(try await node(a, ["foo", "bar", "linked"]) == nil)
      #expect(try await a.queueCount() == 0)
    }
  }

  @Test func seed001_createAndSupplyDataInThreeWays() async throws {
    try await TestWorld.run { world in
      let list = List(uuid: "list", title: "Groceries")
      let box = Seed001Box()
      let (a, zdc, user) = try await device(world, delegate: box)
      let seed = Seed001(localUserID: user, list: list)
      seed.zdc = zdc
      box.inner = seed
      let image = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
      try Data("image".utf8).write(to: image)
      defer { try? FileManager.default.removeItem(at: image) }
      seed.imageFile = image
      let promised = String(decoding: someSlowTask(), as: UTF8.self)
      let object = String(decoding: MyObject().serializeAsJSON(), as: UTF8.self)
      let kinds = [(Seed001.Kind.object, "list", object), (.file, "file", "image"), (.promise, "promised", promised)]
      for (kind, name, content) in kinds {
        seed.kind = kind
        Seed001(localUserID: user, list: List(uuid: name)).creatingTheNodeOfAList(
          zdc: zdc, databaseConnection: try a.database)
        try await a.sync()
        #expect(try await a.queueCount() == 0, "\(name)")
        let node = try #require(try await node(a, [name]))
        let file = try await #require(zdc.downloadManager).downloadNodeData(node).cryptoFile
        #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == Data(content.utf8), "\(name)")
        try FileManager.default.removeItem(at: file.fileURL)
      }
    }
  }

  @Test("Q1: the seed's delegate marks and downloads in didDiscoverNewNode, and gets every content")
  func seed001_downloadsInTheCallback() async throws {
    try await TestWorld.run { world in
      let box = Seed001Box()
      let a = try await world.device("A")
      for number in 0..<50 { try await a.create("/\(number)", "task \(number)") }
      try await a.sync()
      let b = try await TestDevice("B", server: world.server, clock: world.clock, delegate: box)
      let user = try await b.login(words: try #require(world.words()))
      let seed = Seed001(localUserID: user, list: List(uuid: "list"))
      seed.zdc = try b.zdc
      box.inner = seed
      try await b.pull()
      var contents: Set<String> = []
      var iterator = seed.downloaded.stream.makeAsyncIterator()
      for _ in 0..<50 { contents.insert(await iterator.next() ?? "") }
      #expect(contents == Set((0..<50).map { "task \($0)" }))
      try await b.close()
    }
  }

  @Test func seed002_downloadingDecryptsIntoMemory() async throws {
    try await TestWorld.run { world in
      let (a, zdc, user) = try await device(world, delegate: Seed000Delegate())
      try await a.database.write { transaction in
        let cloud = try #require(zdc.cloudTransaction(transaction, forLocalUserID: user))
        try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["content"]))
      }
      try await a.sync()
      let node = try #require(try await node(a, ["content"]))
      let cleartext = await withCheckedContinuation { continuation in
        Seed002 { data, _ in continuation.resume(returning: data) }
          .downloading(zdc: zdc, node: node, nodeID: node.uuid)
      }
      #expect(String(decoding: cleartext, as: UTF8.self) == "content")
    }
  }
}

extension SeedTests {
  @Test func seed000_dataFromACryptoFile() async throws {
    try await TestWorld.run { world in
      let (a, zdc, user) = try await device(world, delegate: Seed000Delegate())
      let seed = Seed000(localUserID: user)
      try await a.database.write { transaction in
        let cloud = try #require(zdc.cloudTransaction(transaction, forLocalUserID: user))
        let node = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["photo"]))
        #expect(seed.dataFromACryptoFile(zdc: zdc, node: node) == nil)
        try zdc.diskManager?.importNodeData(ZDCDiskImport(cleartextData: Data("photo".utf8)), for: node)
        #expect(seed.dataFromACryptoFile(zdc: zdc, node: node) != nil)
      }
      try await a.sync()
      #expect(try await a.queueCount() == 0)
    }
  }

  @Test func seed002_aCellShowsItsThumbnail() async throws {
    try await TestWorld.run { world in
      let (a, zdc, user) = try await device(world, delegate: Seed000Delegate())
      let node = try await a.database.write { transaction in
        let cloud = try #require(zdc.cloudTransaction(transaction, forLocalUserID: user))
        let node = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["photo"]))
        try zdc.diskManager?.importNodeThumbnail(ZDCDiskImport(cleartextData: Data("small".utf8)), for: node)
        return node
      }
      let seed = Seed002 { _, _ in }
      let cell = Cell(taskID: "task")
      let standIn = UIImage("none".utf8)
      seed.fetchingAThumbnail(zdc: zdc, imageNode: node, cell: cell, taskID: "task", defaultImage: standIn)
      // The thumbnail may have arrived already: the main thread fills the cell, and this is another thread.
      #expect(cell.thumbnail.images.first == standIn)
      while cell.thumbnail.images.count < 2 { await _Concurrency.Task.yield() }
      #expect(cell.thumbnail.image == UIImage("small".utf8))
      seed.fetchingAThumbnail(zdc: zdc, imageNode: node, cell: cell, taskID: "task", defaultImage: standIn)
      #expect(cell.thumbnail.images == [standIn, UIImage("small".utf8), UIImage("small".utf8)])
      let recycled = Cell(taskID: "another")
      seed.fetchingAThumbnail(zdc: zdc, imageNode: node, cell: recycled, taskID: "task", defaultImage: standIn)
      #expect(recycled.thumbnail.images == [UIImage("small".utf8)])
      try await a.sync()
    }
  }
}

/// Breaks a cycle: the seed's delegate needs the account, and the account needs a delegate.
final class Seed001Box: ZeroDarkCloudDelegate {
  nonisolated(unsafe) var inner: Seed001!

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    inner.data(for: node, at: path, transaction: transaction)
  }
  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws {
    inner.didPushNodeData(node, at: path, transaction: transaction)
  }
  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws {
    inner.didDiscoverNewNode(node, at: path, transaction: transaction)
  }
  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    inner.didDiscoverModifiedNode(node, with: change, at: path, transaction: transaction)
  }
  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    inner.didDiscoverMovedNode(node, from: oldPath, to: newPath, transaction: transaction)
  }
  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    inner.didDiscoverDeletedNode(node, at: path, timestamp: timestamp, transaction: transaction)
  }
  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    inner.didDiscoverConflict(conflict, forNode: node, atPath: path, transaction: transaction)
  }
}
