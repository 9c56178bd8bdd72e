import Foundation
import ZeroDarkCloud

/// The first example of the README, as an app would have it.
enum ReadmeExample {
  struct Note: Codable, Sendable {
    var id = ""
    var title = ""
  }

  static func run(_ zdc: ZeroDarkCloud, key: Data, note: Note) async throws -> [String] {
    let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
    let (user, words) = try await session.localUserManager.createAccount()  // 24 words open it on another device
    try await session.tree(of: user).write { transaction, cloud in
      transaction.setObject(note, forKey: note.id, inCollection: "notes")  // your object
      try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: [note.title]))  // its node in the cloud
    }  // both are committed together; the upload starts when it can, also after a crash or days offline
    return words
  }
}
