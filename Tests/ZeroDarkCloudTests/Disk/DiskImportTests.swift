import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCTreesystem
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCClientStore
@testable import ZDCTransfers
@testable import ZeroDarkCloud

@Suite struct DiskImportTests {
  @Test func memory_aFile_andACryptoFile_comeBackAsTheyWere() async throws {
    try await DiskFixture.run(nodes: 3) { fixture in
      let text = String(repeating: "0123456789", count: 50_000)
      try fixture.put(text, fixture.nodes[0])
      let file = fixture.folder.url.appendingPathComponent("clear")
      try Data(text.utf8).write(to: file)
      try fixture.disk.importNodeData(ZDCDiskImport(cleartextFileURL: file), for: fixture.nodes[1])
      let sealed = try #require(fixture.disk.nodeData(fixture.nodes[0])?.cryptoFile)
      try fixture.disk.importNodeData(ZDCDiskImport(cryptoFile: sealed), for: fixture.nodes[2])
      for node in fixture.nodes {
        let export = try #require(fixture.disk.nodeData(node, preferredFormat: .cloudFile))
        #expect(try export.text() == text)
        #expect(export.cryptoFile?.fileFormat == .cacheFile && !export.isNilPlaceholder && !export.isStoredPersistently)
      }
      #expect(try Data(contentsOf: file) == Data(text.utf8))
    }
  }

  @Test("O-b2: content imported before insertNode belongs to the node afterwards")
  func importBeforeInsert() async throws {
    try await DiskFixture.run { fixture in
      var node = ZDCNode(localUserID: fixture.userID)
      (node.parentID, node.name) = (fixture.node.uuid, "photo")
      let photo = ZDCDiskImport(cleartextData: Data("photo".utf8))
      photo.storePersistently = true
      photo.migrateToCacheAfterUpload = true
      try fixture.disk.importNodeData(photo, for: node)
      try fixture.disk.importNodeThumbnail(ZDCDiskImport(cleartextData: Data("tiny".utf8)), for: node)
      #expect(try fixture.text(node) == "photo")
      let inserted = try fixture.insert(node)
      #expect(inserted.uuid == node.uuid)
      #expect(try fixture.text(inserted) == "photo")
      #expect(try fixture.disk.nodeThumbnail(inserted)?.text() == "tiny")
      // The files belong to the node and are deleted with it.
      try fixture.delete(inserted)
      #expect(fixture.disk.nodeData(inserted) == nil && fixture.disk.nodeThumbnail(inserted) == nil)
      #expect(errorCode { try fixture.put("late", inserted) } == .nodeNotFound)
    }
  }

  @Test("O-b2: in one transaction too, and with deleteAfterUpload the file waits for the upload")
  func importBeforeInsertInOneTransaction() async throws {
    try await DiskFixture.run { fixture in
      var node = ZDCNode(localUserID: fixture.userID)
      (node.parentID, node.name) = (fixture.node.uuid, "photo")
      let (fresh, photo) = (node, ZDCDiskImport(cleartextData: Data("photo".utf8)))
      photo.deleteAfterUpload = true
      try fixture.write { _, cloud in
        try fixture.disk.importNodeData(photo, for: fresh)
        try cloud.insertNode(fresh)
      }
      #expect(fixture.disk.nodeData(fresh)?.isStoredPersistently == true)
      try await fixture.connection.write { transaction in
        let row = try #require(try transaction.nodes.node(uuid: fresh.uuid))
        try DiskWriter(transaction).uploadsFinished(node: row.id)
      }
      #expect(fixture.disk.nodeData(fresh) == nil)
    }
  }

  @Test("O-b2: an import whose node is never inserted goes after a day, at a launch")
  func importWithoutInsert() async throws {
    try await DiskFixture.run { fixture in
      let node = ZDCNode(localUserID: fixture.userID)
      try fixture.put("lost", node) { $0.storePersistently = true }
      let soon = try fixture.asIfKilledNow()
      soon.disk.finishPending()
      #expect(try soon.text(node) == "lost")
      try soon.close()
      fixture.clock.advance(by: .seconds(25 * 3_600))
      let later = try fixture.asIfKilledNow()
      later.disk.finishPending()
      #expect(try later.text(node) == nil)
      try later.checkFiles()
      try later.close()
      try fixture.disk.deleteNodeData(node.uuid)
    }
  }

  @Test("a row that an earlier version stored, without the content's eTag, is read")
  func rowOfAnEarlierVersion() throws {
    let secrets = DiskFileRow.Secrets(eTag: "e", contentETag: nil, identity: "i", file: nil)
    var bytes = secrets.encoded()
    // The version, a text of six bytes, and the mark of an absent text.
    bytes[0] = 1
    bytes.remove(at: 7)
    let decoded = try DiskFileRow.Secrets(decoding: bytes)
    #expect(decoded.eTag == "e" && decoded.contentETag == nil && decoded.identity == "i")
  }

  @Test func emptyContentIsContent_andAPlaceholderIsNone() async throws {
    try await DiskFixture.run { fixture in
      try fixture.put("")
      #expect(try fixture.text() == "")
      #expect(errorCode { try fixture.disk.importNodeData(ZDCDiskImport(), for: fixture.node) } == .invalidParameter)
      #expect(fixture.disk.nodeThumbnail(fixture.node) == nil)
      try fixture.disk.importNodeThumbnail(ZDCDiskImport(), for: fixture.node)
      #expect(fixture.disk.nodeThumbnail(fixture.node)?.isNilPlaceholder == true)
      #expect(!fixture.disk.hasNodeThumbnail(fixture.node.uuid))
    }
  }

  @Test func anImportReplaces_keepsItsETag_andADeleteTakesAll() async throws {
    try await DiskFixture.run { fixture in
      try fixture.put("first") { $0.eTag = "1" }
      try fixture.put("second") { diskImport in
        diskImport.eTag = "2"
        diskImport.expiration = 60
      }
      let export = try #require(fixture.disk.nodeData(fixture.node))
      #expect(try export.text() == "second" && export.eTag == "2" && export.expiration == 60)
      try fixture.disk.deleteNodeData(forNodeIDs: [fixture.node.uuid, "unknown"])
      #expect(fixture.disk.nodeData(fixture.node) == nil && fixture.present() == [])
    }
  }

  @Test func avatarsAreTheUsersAndTheirIdentities() async throws {
    try await DiskFixture.run { fixture in
      let user = ZDCUser(uuid: "a-user", isLocal: false)
      try fixture.disk.importUserAvatar(ZDCDiskImport(cleartextData: Data("main".utf8)), for: user)
      try fixture.disk.importUserAvatar(ZDCDiskImport(cleartextData: Data("work".utf8)), for: user, identityID: "work")
      try fixture.disk.importUserAvatar(ZDCDiskImport(), for: user, identityID: "home")
      #expect(try fixture.disk.userAvatar(user)?.text() == "main")
      #expect(try fixture.disk.userAvatar(user, forIdentityID: "work")?.text() == "work")
      #expect(fixture.disk.userAvatar(user, forIdentityID: "home")?.isNilPlaceholder == true)
      #expect(fixture.disk.storedIdentityIDs("a-user") == ["home", "work"])
      #expect(fixture.disk.hasUserAvatar("a-user") && !fixture.disk.hasUserAvatar("a-user", forIdentityID: "home"))
      fixture.clock.advance(by: .seconds(7 * 24 * 3_600))
      #expect(fixture.disk.userAvatar(user) == nil && fixture.disk.storedIdentityIDs("a-user") == [])
      try fixture.disk.importUserAvatar(ZDCDiskImport(cleartextData: Data("new".utf8)), for: user)
      try fixture.disk.deleteUserAvatar("a-user")
      #expect(fixture.disk.userAvatar(user) == nil)
    }
  }

  @Test func aNodeThatIsNotThereGetsNothing_andADeletedNodeTakesItsFilesAlong() async throws {
    try await DiskFixture.run(nodes: 2) { fixture in
      for node in fixture.nodes {
        try fixture.put("data", node) { $0.storePersistently = true }
        try fixture.disk.importNodeThumbnail(ZDCDiskImport(cleartextData: Data("small".utf8)), for: node)
      }
      #expect(try fixture.fileNames().count == 4)
      try await fixture.connection.write { transaction in
        let row = try #require(try transaction.nodes.node(uuid: fixture.node.uuid))
        try transaction.nodes.deleteSubtree(of: row.id)
      }
      fixture.disk.finishPending()
      #expect(try fixture.fileNames().count == 2 && fixture.present() == [1])
      #expect(errorCode { try fixture.put("late") } == .nodeNotFound)
    }
  }

  // MARK: In transactions

  @Test func callsInsideATransactionArePartOfIt() async throws {
    struct Stop: Error {}
    try await DiskFixture.run { fixture in
      let node = fixture.node
      try await fixture.connection.write { _ in
        try fixture.put("inside")
        #expect(try fixture.disk.nodeData(node)?.text() == "inside")
      }
      #expect(try fixture.text() == "inside")
      await #expect(throws: Stop.self) {
        try await fixture.connection.write { _ in
          try fixture.put("undone")
          try fixture.disk.importNodeThumbnail(ZDCDiskImport(cleartextData: Data("undone".utf8)), for: node)
          #expect(try fixture.disk.nodeData(node)?.text() == "undone")
          throw Stop()
        }
      }
      #expect(try fixture.text() == "inside" && fixture.disk.nodeThumbnail(node) == nil)
      // A lookup in a read transaction, and an import, which needs a separate transaction.
      let seen = try await fixture.connection.read { _ in
        try fixture.put("meanwhile")
        return try fixture.disk.nodeData(node)?.text()
      }
      #expect(seen == nil || seen == "inside")
      #expect(try fixture.text() == "meanwhile")
    }
  }

  // MARK: Confidentiality

  @Test func nothingOnDiskRevealsNodeOrKind() async throws {
    let canaries = [
      "canary-in-the-data-93f1", "canary-thumbnail-5b2c", "canary-identity-88aa", "canary-etag-value-17d0",
    ]
    try await DiskFixture.run { fixture in
      try fixture.put(canaries[0]) { $0.eTag = canaries[3] }
      try fixture.disk.importNodeThumbnail(ZDCDiskImport(cleartextData: Data(canaries[1].utf8)), for: fixture.node)
      try fixture.disk.importUserAvatar(
        ZDCDiskImport(cleartextData: Data(canaries[1].utf8)),
        for: ZDCUser(uuid: "user-name-of-a-friend", isLocal: false),
        identityID: canaries[2])
      #expect(try fixture.fileNames().count == 3)
      #expect(try CanaryScanner(canaries).scan(folder: fixture.folder.url).isEmpty)
      // File names reveal neither owner nor type: all look alike, and only the owner can open the folder.
      let attributes = try FileManager.default.attributesOfItem(atPath: fixture.disk.folder.url.path)
      #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o700)
      try Data(canaries[0].utf8).write(to: fixture.folder.url.appendingPathComponent("clear"))
      #expect(try !CanaryScanner(canaries).scan(folder: fixture.folder.url).isEmpty)
    }
  }

  @Test func aFileThatWasChangedDoesNotOpen_andOneThatIsGoneIsForgotten() async throws {
    try await DiskFixture.run { fixture in
      try fixture.put("content")
      let export = try #require(fixture.disk.nodeData(fixture.node)?.cryptoFile)
      var bytes = try Data(contentsOf: export.fileURL)
      bytes[bytes.count - 1] ^= 1
      try bytes.write(to: export.fileURL)
      #expect(throws: ZDCSecurityError.self) { try ZDCFileConversion.decryptCryptoFile(intoMemory: export) }
      try FileManager.default.removeItem(at: export.fileURL)
      #expect(fixture.disk.nodeData(fixture.node) == nil)
      fixture.disk.finishPending()
      #expect(!fixture.disk.hasNodeData(fixture.node.uuid))
    }
  }

  @Test func aUrlOfTheDiskManagersIsLeftAlone_anotherIsDeleted() async throws {
    try await DiskFixture.run { fixture in
      try fixture.put("content")
      let url = try #require(fixture.disk.nodeData(fixture.node)?.cryptoFile?.fileURL)
      fixture.disk.deleteFileIfUnmanaged(url)
      #expect(try fixture.text() == "content")
      let other = fixture.folder.url.appendingPathComponent("download")
      try Data("x".utf8).write(to: other)
      fixture.disk.deleteFileIfUnmanaged(other)
      fixture.disk.deleteFileIfUnmanaged(other)
      #expect(!FileManager.default.fileExists(atPath: other.path))
    }
  }
}
