import Foundation
import ZeroDarkCloud
import ZeroDarkCloudTesting

// Names that the examples in doc comments use without declaring them. `Scripts/check-snippets` compiles each example as a
// function, which is never called.

private func missing<Value>() -> Value { preconditionFailure("examples are only compiled") }

// The app's framework and what belongs to it.
nonisolated(unsafe) let zdc: ZeroDarkCloud = missing()
nonisolated(unsafe) let config: ZDCConfig = missing()
nonisolated(unsafe) let databaseConfig: ZDCDatabaseConfig = missing()
nonisolated(unsafe) let session: ZDCSession = missing()
nonisolated(unsafe) let myDelegate: any ZeroDarkCloudDelegate = missing()
nonisolated(unsafe) let syncManager: ZDCSyncManager = missing()
nonisolated(unsafe) let manager: ZDCDownloadManager = missing()
nonisolated(unsafe) let connection: ZDCDatabaseConnection = missing()
nonisolated(unsafe) let tree: ZDCUserTree = missing()
nonisolated(unsafe) let key: Data = missing()
nonisolated(unsafe) let passphrase: String = missing()
nonisolated(unsafe) let url: URL = missing()
nonisolated(unsafe) let imageURL: URL = missing()
nonisolated(unsafe) let cacheURL: URL = missing()

// The parameters of a transaction's closure or a delegate's method.
nonisolated(unsafe) let transaction: ZDCReadWriteTransaction = missing()
nonisolated(unsafe) let cloudTransaction: ZDCCloudTransaction = missing()
nonisolated(unsafe) let cloud: ZDCCloudTransaction = missing()
nonisolated(unsafe) let user: ZDCLocalUser = missing()
nonisolated(unsafe) let node: ZDCNode = missing()
nonisolated(unsafe) let inbox: ZDCNode = missing()
nonisolated(unsafe) let folder: ZDCNode = missing()
nonisolated(unsafe) let nodes: [ZDCNode] = missing()
nonisolated(unsafe) let path: ZDCTreesystemPath = missing()
nonisolated(unsafe) let operation: ZDCCloudOperation = missing()
nonisolated(unsafe) let entry: ZDCMergeJournalEntry = missing()
nonisolated(unsafe) let file: ZDCCryptoFile = missing()
nonisolated(unsafe) let info: ZDCCloudDataInfo = missing()
nonisolated(unsafe) let alicesUserID: String = missing()
nonisolated(unsafe) let bobsUserID: String = missing()
nonisolated(unsafe) let listNodeID: String = missing()
nonisolated(unsafe) let sharedNodeID: String = missing()
nonisolated(unsafe) let senderID: String = missing()
nonisolated(unsafe) let messageID: String = missing()
nonisolated(unsafe) let scannedCode: String = missing()
nonisolated(unsafe) let bob: ZDCUser = missing()
nonisolated(unsafe) let version: ZDCNodeVersion = missing()
nonisolated(unsafe) let sender: ZDCUser = missing()
nonisolated(unsafe) let list: ZDCNode = missing()
nonisolated(unsafe) let invite: ZDCGraftInvite = missing()
nonisolated(unsafe) let invitation: Invitation = missing()
nonisolated(unsafe) let permsOps: [ZDCCloudOperation] = missing()

// The app's own.
nonisolated(unsafe) var task: Task = missing()
nonisolated(unsafe) let taskID: String = missing()
nonisolated(unsafe) let coverID: String? = missing()
nonisolated(unsafe) let theirs: Task = missing()
nonisolated(unsafe) let pending: [ZDCChangeset] = missing()
nonisolated(unsafe) let renderer: Renderer = missing()
nonisolated(unsafe) let screen: Screen = missing()
nonisolated(unsafe) let recorder: Recorder = missing()
nonisolated(unsafe) let total: UInt64 = missing()
nonisolated(unsafe) let typed: String = missing()
nonisolated(unsafe) let jpeg: Data = missing()
nonisolated(unsafe) let camera: Camera = missing()
nonisolated(unsafe) let cancelButton: Button = missing()
nonisolated(unsafe) let banner: Banner = missing()
nonisolated(unsafe) let cell: Cell = missing()
nonisolated(unsafe) let placeholder: ZDCPlatformImage? = missing()
func show(_ titles: [String]) {}
func store(_ content: ZDCNodeContent, of node: ZDCNode, _ transaction: ZDCReadWriteTransaction) {}
func store(_ data: Data, of node: ZDCNode) throws {}
func rounded(_ image: ZDCPlatformImage) -> ZDCPlatformImage? { nil }
func userAgrees(_ digits: String) async -> Bool { false }
func openTree(_ tree: ZDCUserTree) {}
func askToDownload(_ node: ZDCNode) {}
func askForWordsOrNewAccount() {}
func askWhetherToLoseChanges() {}
func refreshCell() {}
func refreshRow(_ nodeID: String) {}
func importDocument(_ file: ZDCCryptoFile, of node: ZDCNode) {}
func userConfirms(_ zone: ZDCFrozenZone) async -> Bool { false }
func serve() async throws {}
func start(_ session: ZDCSession) {}
func report(_ error: any Error) {}
func refreshList(_ keys: [String]) {}
func copyDatabase(at url: URL) throws {}
func askAgain() {}
func askForRoom() {}
func askForUpdate() {}
func askForInvitation() {}
func askWhetherTheServerWasRestored() {}
func syncLater() {}
func someSlowTask() -> Data { Data() }

// Tests of an app.
nonisolated(unsafe) let world: TestWorld = missing()
nonisolated(unsafe) let server: TestServer = missing()
nonisolated(unsafe) let clock: ManualClock = missing()
nonisolated(unsafe) let a: TestDevice = missing()
nonisolated(unsafe) let b: TestDevice = missing()

struct Task: ZDCRecord, Codable, Equatable {
  var uuid = ""
  @Syncable var title = ""
  @Syncable var completed = false

  static var syncableFields: [ZDCField<Task>] {
    [ZDCField("title", \._title), ZDCField("completed", \._completed)]
  }
}

struct Invitation: Sendable {
  var title: String
  var cloudID: String
  var cloudPath: String
}

struct Renderer: Sendable {
  func export(_ task: Task) async throws -> Data { Data() }
  func preview(of nodeID: String) async throws -> Data { Data() }
}

struct Bitmap: Sendable {
  let byteCount = 0
  init?(_ data: Data) {}
}

struct Camera: Sendable {
  func takePicture(_ done: @escaping @Sendable (Data?) -> Void) {}
}

struct Button: Sendable {
  var action: @Sendable () -> Void {
    get { {} }
    nonmutating set {}
  }
}

struct Recorder: Sendable {
  func next() throws -> Data? { nil }
}

struct Screen: Sendable {
  var visibleFolderIDs: Set<String>? { get async { nil } }
}

struct Banner: Sendable {
  var isHidden: Bool {
    get { true }
    nonmutating set {}
  }
}

struct Cell: Sendable {
  struct Picture: Sendable {
    var image: ZDCPlatformImage? {
      get { nil }
      nonmutating set {}
    }
  }

  let thumbnail = Picture()
}
