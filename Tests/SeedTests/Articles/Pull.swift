import Foundation
import Synchronization
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The examples of the article "Pull", as an app would have them.
final class PullArticle: Sendable {
  struct Screen: Sendable {
    var visibleFolder: String? { get async { nil } }
  }

  let zdc: ZeroDarkCloud
  let localUserID: String
  let disk: ZDCDiskManager
  let screen = Screen()
  /// The names of nodes whose content could not be processed.
  let failed = Mutex<[String]>([])

  init(zdc: ZeroDarkCloud, localUserID: String) throws {
    self.zdc = zdc
    self.localUserID = localUserID
    disk = try #require(zdc.diskManager)
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
  ) throws {
    guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID) else { return }
    for collection in ["lists", "tasks"] {
      for key in try transaction.keys(inCollection: collection) {
        guard let id = cloud.linkedNodeID(forKey: key, inCollection: collection), cloud.node(id: id) == nil
        else { continue }
        transaction.removeObject(forKey: key, inCollection: collection)
      }
    }
  }

  func downloading(_ downloads: ZDCDownloadManager, _ connection: ZDCDatabaseConnection) async throws {
    let (zdc, localUserID) = (zdc, localUserID)
    for try await download in downloads.downloadMarkedContents(forLocalUserID: localUserID) {
      let node = download.node
      do {
        let theirs = try JSONDecoder().decode(Task.self, from: cleartext(download.content.get()))
        try await connection.write { transaction in
          guard
            let cloud = zdc.cloudTransaction(transaction, forLocalUserID: localUserID),
            cloud.node(id: node.uuid)?.eTag_data == node.eTag_data  // it may have been deleted or changed since
          else { return }
          let task = try merged(theirs, of: node, cloud)
          transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
          try cloud.linkNodeID(node.uuid, toKey: task.uuid, inCollection: "tasks")
          cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .data, ifETagMatches: node.eTag_data)
        }
      } catch {
        report(error, node)
      }
    }
  }

  func cleartext(_ content: ZDCNodeContent) throws -> Data {
    switch content {
    case .memory(let data, _, _): return data
    case .file(let file):
      defer { disk.deleteFileIfUnmanaged(file.fileURL) }
      return try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
    }
  }

  func report(_ error: any Error, _ node: ZDCNode) { failed.withLock { $0.append(node.name ?? "") } }

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

private func merged(_ theirs: Task, of node: ZDCNode, _ cloud: ZDCCloudTransaction) throws -> Task {
  guard let eTag = node.eTag_data, cloud.hasPendingDataUploads(forNodeID: node.uuid),
    var mine = cloud.linkedObject(forNodeID: node.uuid) as? Task
  else { return theirs }
  let report = try mine.mergeReporting(
    cloudVersion: theirs, pendingChangesets: cloud.pendingChangesets(forNodeID: node.uuid))
  cloud.didMergeData(withETag: eTag, forNodeID: node.uuid, report: report)
  return mine
}

@Suite(.timeLimit(.minutes(20))) struct PullArticleTests {
  /// Runs `body` with an app on two devices: `laptop` writes, `phone` does what the article says.
  private func withApp(
    _ body: @escaping @Sendable (_ laptop: TestDevice, _ phone: TestDevice, _ app: PullArticle) async throws -> Void
  ) async throws {
    let clock = ManualClock()
    let server = try await TestServer.start(clock: clock)
    let laptop = try await TestDevice("laptop", server: server, clock: clock)
    let phone = try await TestDevice("phone", server: server, clock: clock) { database in
      database.register(List.self, inCollection: "lists")
      database.register(Task.self, inCollection: "tasks")
    }
    try await phone.login(words: try await laptop.createAccount())
    try await body(laptop, phone, try PullArticle(zdc: phone.zdc, localUserID: phone.localUserID))
    try await phone.close()
    try await laptop.close()
    try await server.stop()
  }

  private func keys(_ phone: TestDevice, _ collection: String) async throws -> Set<String> {
    try await phone.write { transaction, _ in Set(try transaction.keys(inCollection: collection)) }
  }

  @Test func aDeletedList_takesItsTasksAlong_andNoOthers() async throws {
    try await withApp { laptop, phone, app in
      for path in ["/one", "/one/a", "/one/b", "/two", "/two/c"] { try await laptop.create(path) }
      try await laptop.sync()
      try await phone.sync()
      for path in ["/one", "/one/a", "/one/b", "/two", "/two/c"] {
        let node = try await phone.node(path)
        let collection = path.count == 4 ? "lists" : "tasks"
        try await phone.write { transaction, cloud in
          if collection == "lists" {
            transaction.setObject(List(), forKey: path, inCollection: collection)
          } else {
            transaction.setObject(Task(), forKey: path, inCollection: collection)
          }
          try cloud.linkNodeID(node.uuid, toKey: path, inCollection: collection)
        }
      }
      phone.recorder.on(.deleted) { node, transaction in
        guard let transaction = transaction as? ZDCReadWriteTransaction else { return }
        let path = ZDCTreesystemPath(pathComponents: [])
        try app.didDiscoverDeletedNode(node, at: path, timestamp: nil, transaction: transaction)
      }
      try await laptop.delete("/one")
      try await laptop.sync()
      try await phone.sync()
      #expect(try await keys(phone, "lists") == ["/two"])
      #expect(try await keys(phone, "tasks") == ["/two/c"])
    }
  }

  /// The marked nodes include one that is not a task, a large one, and one that is deleted before its content arrives.
  @Test func theLoopContinues_whateverTheNode() async throws {
    try await withApp { laptop, phone, app in
      let large = Task(title: String(repeating: "oat milk ", count: 20_000))
      let tasks = ["large": large, "small": Task(title: "milk"), "gone": Task(title: "tea")]
      for (name, task) in tasks {
        try await laptop.create("/\(name)", String(decoding: try JSONEncoder().encode(task), as: UTF8.self))
      }
      try await laptop.create("/broken", "no task")
      try await laptop.sync()
      try await phone.sync()
      let gone = try await phone.node("/gone")
      for name in ["broken", "gone", "large", "small"] {
        let node = try await phone.node("/\(name)")
        try await phone.write { _, cloud in cloud.markNodeAsNeedsDownload(node.uuid, components: .data) }
      }
      let (downloads, connection) = (try #require(try phone.zdc.downloadManager), try phone.database)
      let (isWriting, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let deleting = _Concurrency.Task {
        try await phone.write { _, cloud in
          isWriting.signal()
          goOn.wait()
          try cloud.delete(gone)
        }
      }
      while isWriting.wait(timeout: .now()) == .timedOut { await _Concurrency.Task.yield() }
      let before = phone.network.counts()
      let loop = _Concurrency.Task { try await app.downloading(downloads, connection) }
      while phone.network.counts() == before { await _Concurrency.Task.yield() }
      goOn.signal()
      try await deleting.value
      let expected = Set([large.uuid, try #require(tasks["small"]).uuid])
      while try await !keys(phone, "tasks").isSuperset(of: expected) || app.failed.withLock({ $0.isEmpty }) {
        await _Concurrency.Task.yield()
      }
      #expect(app.failed.withLock { $0 } == ["broken"])
      loop.cancel()
      _ = await loop.result
    }
  }
}
