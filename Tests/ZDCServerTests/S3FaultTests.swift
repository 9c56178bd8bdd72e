import Foundation
import Testing
import ZDCProtocol
import ZDCServer

@testable import ZDCServerS3

/// Faults of the whole object store. Its gateway is killed, so these tests run alone and one after the other.
@Suite(
  .serialized,
  .enabled(if: ProcessInfo.processInfo.environment["ZDC_TEST_S3_FAULTS"] != nil, "make test-s3 runs these"))
struct S3FaultTests {
  typealias Large = BlobTests.Large

  private static func gateway(_ action: String) async throws {
    let folder = try #require(ProcessInfo.processInfo.environment["ZDC_TEST_S3_FOLDER"])
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "Scripts/object-store")
    process.arguments = ["gateway-\(action)", folder]
    let status = try await withCheckedThrowingContinuation { continuation in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do { try process.run() } catch { continuation.resume(throwing: error) }
    }
    try #require(status == 0)
  }

  private static func put(_ index: Int, _ large: Large, _ store: any BlobStore) async throws {
    let writer = try await store.openPart(large.blob, index: index, cipherLength: large.length)
    try await writer.write(large.part(index))
    #expect(try await writer.finish() == large.hash(ofPart: index, large.part(index)))
  }

  private static func impatient() throws -> S3BlobStore {
    var bounds = S3Client.Bounds()
    (bounds.connect, bounds.total) = (.seconds(5), .seconds(10))
    return S3BlobStore(client: try TestObjectStore.client(bounds: bounds))
  }

  /// - The gateway is killed between two parts, and again before the parts are joined
  /// => nothing that was acknowledged is lost, and what was refused is taken later
  @Test func theGatewayIsKilledDuringAnUpload() async throws {
    let store = try Self.impatient()
    let large = Large()
    try await Self.put(0, large, store)
    try await Self.gateway("kill")
    await #expect(throws: BlobStoreFailure.self) { try await Self.put(1, large, store) }
    await #expect(throws: BlobStoreFailure.self) {
      try await store.contentRoot(large.blob, cipherLength: large.length)
    }
    try await Self.gateway("start")
    for index in [1, 2] { try await Self.put(index, large, store) }
    try await Self.gateway("kill")
    try await Self.gateway("start")
    #expect(try await store.contentRoot(large.blob, cipherLength: large.length) == large.root)
    #expect(try await store.read(large.blob, range: 0..<large.length) == large.bytes)
  }

  /// A client of a patient store does not notice a gateway that restarts.
  @Test func aRestartOfTheGatewayIsWaitedFor() async throws {
    let store = try TestObjectStore.store()
    let large = Large(70_000)
    try await Self.gateway("kill")
    async let restart: Void = Self.gateway("start")
    var outcome: Result<Void, any Error> = .success(())
    // The gateway needs seconds to start on a busy machine; a client repeats the part, as here.
    for _ in 0..<60 {
      do {
        try await Self.put(0, large, store)
        outcome = .success(())
        break
      } catch { outcome = .failure(error) }
    }
    try await restart
    try outcome.get()
    #expect(try await store.contentRoot(large.blob, cipherLength: large.length) == large.root)
  }

  /// - The gateway is killed in the middle of a download
  /// => the reader continues where it stopped
  @Test func theGatewayIsKilledDuringADownload() async throws {
    let store = try TestObjectStore.store()
    let large = Large()
    for index in 0..<3 { try await Self.put(index, large, store) }
    _ = try await store.contentRoot(large.blob, cipherLength: large.length)
    let reader = try await store.open(large.blob, range: 0..<large.length)
    var bytes = try #require(try await reader.next())
    try await Self.gateway("kill")
    try await Self.gateway("start")
    while let slice = try await reader.next() { bytes += slice }
    #expect(bytes == large.bytes)
  }

  /// A server whose object store is gone answers everything that does not need it.
  @Test func theServerAnswersWithoutItsObjectStore() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder, blobs: Self.impatient()) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let (large, node) = (Large(70_000), NodeID.random())
      try await server.upload(large, node, zone, token: token)
      try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
      try await Self.gateway("kill")
      let refused = try await server.content(large.blob, of: node, in: zone, token: token)
      #expect((refused.status, refused.error?.code, refused.error?.retryable) == (500, .internalError, true))
      let small = TestZone.Content(300)
      try await server.put(
        [zone.record(.random(), content: small.field())], contents: [small], in: &zone, token: token)
      #expect(server.log.text.contains("the blob store failed"))
      try await Self.gateway("start")
      #expect(try await server.content(large.blob, of: node, in: zone, token: token).bytes == large.bytes)
    }
  }
}
