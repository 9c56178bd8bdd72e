import Foundation
import ZeroDarkCloud

let server = ProcessInfo.processInfo.environment["ZDC_SERVER"] ?? "http://127.0.0.1:7342"

func device(_ name: String) throws -> ZeroDarkCloud {
  let folder = URL(fileURLWithPath: "devices/\(name)")
  let config = ZDCConfig(primaryTreeID: "com.example.notes", serverURL: URL(string: server)!, databaseDirectory: folder)
  let zdc = try ZeroDarkCloud(delegate: Notes(), config: config)
  let keys = zdc.databaseKeyManager
  try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: keys.isConfigured ? keys.unlock() : keys.createKey()))
  return zdc
}

let (laptop, phone) = (try device("laptop"), try device("phone"))
let (user, words) = try await laptop.localUserManager!.createAccount()  // 24 words: all that another device needs
_ = try await phone.localUserManager!.login(words: words)
let news = phone.syncManager!.nodeEvents
try laptop.databaseManager!.rwDatabaseConnection.write { transaction in
  let cloud = laptop.cloudTransaction(transaction, forLocalUserID: user.uuid)
  try cloud?.createNode(withPath: ZDCTreesystemPath(pathComponents: ["first note"]))
}  // the node, its upload and whatever else this block writes are committed together
for await case .didDiscoverNewNode(let node, at: let path) in news {
  let (_, file) = try await phone.downloadManager!.downloadNodeData(node)
  let text = String(decoding: try ZDCFileConversion.decryptCryptoFile(intoMemory: file), as: UTF8.self)
  print("on the phone: \(path), \(text)")
  break
}
