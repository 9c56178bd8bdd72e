import Foundation
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// A data folder whose large content is in an object store, and the refusals of `serve --blobs`, without a store.
@Suite(.needsFolder) struct ObjectStoreFolderTests {
  private static func withFolder(_ body: (String) async throws -> Void) async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await body(folder)
  }

  private static func serve(_ folder: String, _ arguments: [String] = []) async throws -> Int32 {
    try await ServerProcess.run(["serve", "--data", folder, "--listen", "127.0.0.1:0"] + arguments).status
  }

  @Test func anOwnerIsKept_andCanBeRemoved() async throws {
    try await Self.withFolder { (path: String) async throws in
      var folder: DataFolder? = try DataFolder(path: path)
      #expect(try folder?.content.objectStoreOwner() == nil)
      let owner = try await folder?.content.createObjectStoreOwner()
      folder = nil
      folder = try DataFolder(path: path)
      #expect(try folder?.content.objectStoreOwner() == owner)
      try folder?.content.removeObjectStoreOwner()
      #expect(try folder?.content.objectStoreOwner() == nil)
    }
  }

  @Test func aFolderWithLargeContentKeepsIt() async throws {
    try await Self.withFolder { (path: String) async throws in
      let folder = try DataFolder(path: path)
      _ = try await folder.blobs.openPart(.random(), index: 0, cipherLength: 70_000)
      await #expect(throws: StoreOpenError.self) { try await folder.content.createObjectStoreOwner() }
      #expect(try folder.content.objectStoreOwner() == nil)
    }
  }

  @Test func aDamagedOwnerIsRefused() async throws {
    try await Self.withFolder { (path: String) async throws in
      let folder = try DataFolder(path: path)
      try TestServer.write(Array("?".utf8), to: path + "/object-store-owner")
      #expect(throws: StoreOpenError.self) { try folder.content.objectStoreOwner() }
    }
  }

  @Test func theCheckCountsWhatItCannotRead() async throws {
    try await CheckTests.Fixture.with { fixture in
      try TestServer.write(Array(BlobID.random().text.utf8), to: fixture.folder + "/object-store-owner")
      try FileManager.default.removeItem(atPath: fixture.folder + "/blobs")
      let report = try DataFolder.check(path: fixture.folder)
      #expect((report.isClean, report.elsewhere > 0) == (true, true))
      let check = try await ServerProcess.run(["check", "--data", fixture.folder])
      #expect(check.status == 0)
      #expect(check.output.hasSuffix(", \(report.elsewhere) not checked in the object store\n"))
    }
  }

  /// No store listens there, and no attempt leaves a trace in the folder.
  @Test func serveRefusesWhatItCannotUse() async throws {
    try await Self.withFolder { (path: String) async throws in
      let keys = path + ".keys"
      defer { TestServer.remove(keys) }
      try TestServer.write(Array("AWS_ACCESS_KEY_ID=a\nAWS_SECRET_ACCESS_KEY=b\n".utf8), to: keys)
      let key = ["--blobs-key-file", keys]
      #expect(try await Self.serve(path, ["--blobs", "s3://blobs"] + key) == 64)
      #expect(try await Self.serve(path, ["--blobs", "s3+http://blobs@example.org"] + key) == 64)
      #expect(
        try await Self.serve(path, ["--blobs", "s3+http://blobs@127.0.0.1:1", "--blobs-key-file", "/none"]) == 66)
      #expect(try await Self.serve(path, ["--blobs", "s3+http://blobs@127.0.0.1:1"] + key) == 69)
      #expect(try DataFolder(path: path).content.objectStoreOwner() == nil)
    }
  }

  @Test func aServerWhoseContentIsElsewhere_doesNotStartWithoutIt() async throws {
    try await Self.withFolder { (path: String) async throws in
      try await Self.claim(path)
      #expect(try await Self.serve(path) == 64)
    }
  }

  /// Releases the folder's lock before it returns.
  private static func claim(_ path: String) async throws {
    let folder = try DataFolder(path: path)
    _ = try await folder.content.createObjectStoreOwner()
  }
}
