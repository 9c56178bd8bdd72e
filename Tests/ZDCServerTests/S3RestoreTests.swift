import Foundation
import Testing
import ZDCProtocol
import ZDCServer

/// Backups of a server whose large content is in an object store.
@Suite(.needsFolder, .needsObjectStore) struct S3RestoreTests {
  /// - A backup is restored into a folder, then into PostgreSQL, each time with the bucket of the lost server
  /// => the new server has the content, and what came after the backup is not undone
  /// - The bucket is not given, or it is another one
  /// => the restore is refused
  @Test func aServiceIsRestoredBesideItsBucket() async throws {
    let folders = (0..<4).map { _ in TestServer.newFolder() }
    defer { folders.forEach(TestServer.remove) }
    let (data, backup, list) = (folders[0], folders[1], folders[0] + "/deletions")
    let authority = try #require(ProcessInfo.processInfo.environment["ZDC_TEST_S3"])
    let bucket = "s3+http://\(TestObjectStore.bucket)@\(authority)/restore-\(UUID().uuidString)"
    let server = try await ServerProcess.serve(folder: data, ["--blobs", bucket])
    let ((account, token), large, node) = (try await server.newAccount(), BlobTests.Large(100_000), NodeID.random())
    var zone = account.home
    try await server.upload(large, node, zone, token: token)
    try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
    let made = try await ServerProcess.run(["backup", backup, "--data", data])
    #expect(made.status == 0 && made.output.contains("large content is in the object store"), "\(made.output)")
    let other = try await server.login(account, device: .random())
    let path = Routes.path(Routes.sessionOfDevice, account.deviceID.text)
    _ = try await server.send(.DELETE, path, token: other).expect(204)
    #expect(await server.stop() == 0)
    let restore = ["restore", backup, "--deletions", list, "--to-data"]
    #expect(try await ServerProcess.run(restore + [folders[2]]).status == 64)
    #expect(try await ServerProcess.run(restore + [folders[2], "--to-blobs", bucket + "-2"]).status != 0)
    let url = try TestPostgres.shared().newDatabase()
    for (folder, database) in [(folders[2], [String]()), (folders[3], ["--to-database", url])] {
      let run = try await ServerProcess.run(restore + [folder, "--to-blobs", bucket] + database)
      #expect(run.status == 0 && run.output.contains("; 1 devices removed again\n"), "\(run.output)")
      let place = ["--blobs", bucket] + (database.isEmpty ? [] : ["--database", url])
      let restored = try await ServerProcess.serve(folder: folder, place)
      #expect(try await restored.send(.GET, Routes.zones, token: token).status == 401)
      let fresh = try await restored.login(account)
      #expect(try await restored.content(large.blob, of: node, in: zone, token: fresh).bytes == large.bytes)
      #expect(await restored.stop() == 0)
    }
    try TestPostgres.shared().remove(url)
  }
}
