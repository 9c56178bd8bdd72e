import Foundation
import ZeroDarkCloud

let server = ProcessInfo.processInfo.environment["ZDC_SERVER"] ?? "http://127.0.0.1:7342"

func device(_ name: String) throws -> ZDCSession {
  let folder = URL(fileURLWithPath: "devices/\(name)")
  let config = try ZDCConfig(primaryTreeID: "com.example.notes", server: server, databaseDirectory: folder)
  let zdc = try ZeroDarkCloud(delegate: Notes(), config: config)
  let keys = zdc.databaseKeyManager
  let key = try keys.isConfigured ? keys.unlock() : keys.createKey()
  return try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
}

func run() async throws {
  let (laptop, phone) = (try device("laptop"), try device("phone"))
  let (user, words) = try await laptop.localUserManager.createAccount()  // 24 words: all that another device needs
  _ = try await phone.localUserManager.login(words: words)
  let news = phone.syncManager.nodeEvents
  try await laptop.tree(of: user).write { transaction, cloud in
    try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["first note"]))
  }  // the node, its upload and all other changes in this block are committed together
  for await case .didDiscoverNewNode(let node, at: let path) in news {
    let (_, file) = try await phone.downloadManager.downloadNodeData(node)
    let text = String(decoding: try ZDCFileConversion.decryptCryptoFile(intoMemory: file), as: UTF8.self)
    phone.diskManager.deleteFileIfUnmanaged(file.fileURL)
    print("on the phone: \(path), \(text)")
    break
  }
}

try await run()
