import Foundation
import GRDB
import Testing
import ZDCTreesystem

@testable import ZDCAccounts
@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// The register of downloads that outlive their process. Its entries are on disk, and a reported download is removed.
@Suite(.timeLimit(.minutes(20))) struct BackgroundRegisterTests {
  private static let options = ZDCDownloadOptions.Values(canDownloadWhileInBackground: true)

  private static func rows(_ device: NetworkDevice) async throws -> Int {
    try await device.connection.asyncRead { try $0.savedDownloadCount() }
  }

  private static func execute(_ sql: String, _ device: NetworkDevice) async throws {
    try await device.connection.asyncReadWrite { try $0.database.execute(sql: sql) }
  }

  /// Another connection is writing when four callers ask. Each continues only once there is a row, also those that did
  /// not write it.
  @Test func aRunningDownload_hasARow() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: [1])])[0]
      let key = DownloadKey(nodeID: node.uuid, part: .data)
      let (isWriting, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let writing = Task {
        try await device.connection.asyncReadWrite { _ in
          isWriting.signal()
          goOn.wait()
        }
      }
      while isWriting.wait(timeout: .now()) == .timedOut { await Task.yield() }
      let asking = (0..<4).map { _ in
        let attendance = device.downloads.background.attend(key, Self.options)
        return Task {
          try await attendance.begin()
          return try await Self.rows(device)
        }
      }
      for _ in 0..<1_000 { await Task.yield() }
      goOn.signal()
      for task in asking { #expect(try await task.value == 1) }
      try await writing.value
    }
  }

  /// The first caller's row cannot be written, so the next caller writes it.
  @Test func aRowThatCouldNotBeWritten_isWrittenForTheNextWhoAsks() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: [1])])[0]
      let key = DownloadKey(nodeID: node.uuid, part: .data)
      let background = device.downloads.background
      try await Self.execute(
        "CREATE TRIGGER full BEFORE INSERT ON zdc_download BEGIN SELECT RAISE(ABORT, 'by test'); END", device)
      let (first, second) = (background.attend(key, Self.options), background.attend(key, Self.options))
      await #expect(throws: (any Error).self) { try await first.begin() }
      try await Self.execute("DROP TRIGGER full", device)
      try await second.begin()
      #expect(try await Self.rows(device) == 1)
      await first.end(wasServed: false)
      #expect(try await Self.rows(device) == 1)
      await second.end(wasServed: false)
      #expect(try await Self.rows(device) == 0)
    }
  }

  /// The framework stops while the app is being notified.
  @Test func stopping_waitsForTheRunningDelegateCall_andDoesNotRepeatIt() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(300_000))])[0]
      try await device.downloads.background.attend(
        DownloadKey(nodeID: node.uuid, part: .data), Self.options
      ).begin()
      await device.downloads.stop()
      #expect(try await Self.rows(device) == 1)
      let app = SlowApp()
      let next = Self.laterProcess(device, app)
      next.start(AsyncStream<Void> { _ in })
      while app.told.withLock({ $0 }) == 0 { await Task.yield() }
      let hasStopped = Locked(false)
      let stopping = Task {
        await next.stop()
        hasStopped.withLock { $0 = true }
      }
      for _ in 0..<1_000 { await Task.yield() }
      #expect(!hasStopped.withLock { $0 })
      app.goOn.signal()
      await stopping.value
      #expect(try await Self.rows(device) == 0)
      let last = Self.laterProcess(device, app)
      await last.resumeDownloads()
      #expect(app.told.withLock { $0 } == 1)
      await last.stop()
    }
  }

  /// The app has received the download, and the framework stops before this is stored.
  @Test func stopping_waitsUntilAServedDownloadIsNoLongerSaved() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(300))])[0]
      let attendance = device.downloads.background.attend(
        DownloadKey(nodeID: node.uuid, part: .data), Self.options)
      try await attendance.begin()
      let (isWriting, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let writing = Task {
        try await device.connection.asyncReadWrite { _ in
          isWriting.signal()
          goOn.wait()
        }
      }
      while isWriting.wait(timeout: .now()) == .timedOut { await Task.yield() }
      attendance.endSoon(wasServed: true)
      let hasStopped = Locked(false)
      let stopping = Task {
        await device.downloads.stop()
        hasStopped.withLock { $0 = true }
      }
      for _ in 0..<1_000 { await Task.yield() }
      #expect(!hasStopped.withLock { $0 })
      goOn.signal()
      await stopping.value
      #expect(try await Self.rows(device) == 0)
      try await writing.value
    }
  }

  /// Eight callers look for downloads of ended processes at the same time, while one of them resumes and settles each.
  @Test func aDownloadThatWasSettledMeanwhile_isNotResumedAgain() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let nodes = try await Publisher(device).publish([.init(data: [1])])
      let key = DownloadKey(nodeID: nodes[0].uuid, part: .data)
      for _ in 0..<50 {
        let before = BackgroundDownloads(database: device.connection, folder: device.downloads.folder.url)
        try await before.attend(key, Self.options).begin()
        before.stop()
        before.release()
        let next = BackgroundDownloads(database: device.connection, folder: device.downloads.folder.url)
        let resumed = try await withThrowingTaskGroup(of: Int.self) { group in
          for _ in 0..<8 { group.addTask { try await Self.resumeAll(next) } }
          return try await group.reduce(0, +)
        }
        #expect(resumed == 1)
        next.release()
      }
    }
  }

  private static func resumeAll(_ register: BackgroundDownloads) async throws -> Int {
    var count = 0
    for saved in try await register.takeOver() {
      count += 1
      _ = register.endResuming(saved.key)
      await register.settle(saved.key, isOver: true)
    }
    return count
  }

  private static func laterProcess(_ device: NetworkDevice, _ app: SlowApp) -> ZDCDownloadManager {
    ZDCDownloadManager(
      database: device.connection, users: device.users, primaryTreeID: NetworkWorld.treeID,
      folder: device.downloads.folder, partials: device.downloads.partials.url, delegate: DelegateBox(app))
  }

  /// The database key and the system's downloads are stored under names that survive an update, which moves the app's
  /// home folder.
  @Test func theDatabasesName_staysWhenTheAppsHomeMoves() throws {
    func config(_ folder: String, _ name: String = "zdcDatabase") throws -> ZDCConfig {
      let url = try #require(URL(string: "https://example.com"))
      var config = ZDCConfig(
        primaryTreeID: "com.example.todo", serverURL: url, databaseDirectory: URL(fileURLWithPath: folder))
      config.databaseName = name
      return config
    }
    let (before, after) = ("/var/containers/1F3A", "/var/containers/77B0/")
    let path = try config(before + "/Library/ZeroDarkCloud").stablePath(home: before)
    #expect(path == "Library/ZeroDarkCloud/zdcDatabase.sqlite")
    #expect(try config(after + "Library/ZeroDarkCloud").stablePath(home: after) == path)
    #expect(try config("/private" + after + "Library/ZeroDarkCloud/").stablePath(home: after) == path)
    #expect(try config(after + "Library/ZeroDarkCloud").stablePath(home: "/private" + after) == path)
    // Outside the home folder, including a folder that only shares its prefix.
    for folder in ["/srv/data", before + "2"] {
      #expect(try config(folder).stablePath(home: before) == folder + "/zdcDatabase.sqlite")
    }
    // Two databases of one app: in folders of the same name, and in the same folder.
    let name = try config(before + "/Library/ZeroDarkCloud").stableName(home: before)
    #expect(name == "com.example.todo.Library/ZeroDarkCloud/zdcDatabase.sqlite")
    #expect(try config(before + "/Documents/ZeroDarkCloud").stableName(home: before) != name)
    #expect(try config(before + "/Library/ZeroDarkCloud", "other").stableName(home: before) != name)
  }
}

/// Delays its return when notified of a download.
private final class SlowApp: ZeroDarkCloudDelegate {
  let told = Locked(0)
  let goOn = DispatchSemaphore(value: 0)

  func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withCryptoFile cryptoFile: ZDCCryptoFile
  ) {
    told.withLock { $0 += 1 }
    goOn.wait()
    DownloadFolder.remove(cryptoFile.fileURL)
  }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData {
    ZDCData(data: Data())
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}

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
