import NIOCore
import Testing
import ZDCProtocol
import ZDCServer

@testable import ZDCServerS3

/// Cases that only an object store has: several processes, unknown outcomes, and the refusals at the start of a server.
@Suite(.needsObjectStore) struct S3StoreTests {
  typealias Large = BlobTests.Large

  private static func put(_ index: Int, _ large: Large, _ store: any BlobStore) async throws {
    let writer = try await store.openPart(large.blob, index: index, cipherLength: large.length)
    try await writer.write(large.part(index))
    #expect(try await writer.finish() == large.hash(ofPart: index, large.part(index)))
  }

  private static func expectWhole(_ large: Large, _ store: any BlobStore) async throws {
    #expect(try await store.contentRoot(large.blob, cipherLength: large.length) == large.root)
    #expect(try await store.read(large.blob, range: 0..<large.length) == large.bytes)
  }

  @Test func anUploadOutlivesItsProcess() async throws {
    let prefix = "t-\(BlobID.random().text)"
    let large = Large()
    for index in 0..<3 { try await Self.put(index, large, TestObjectStore.store(prefix: prefix)) }
    try await Self.expectWhole(large, TestObjectStore.store(prefix: prefix))
  }

  /// - Three processes receive a part each, none of which has seen the upload
  /// => all use the same one
  @Test func processesAgreeOnTheUpload() async throws {
    let prefix = "t-\(BlobID.random().text)"
    let large = Large()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<3 {
        group.addTask { try await Self.put(index, large, TestObjectStore.store(prefix: prefix)) }
      }
      try await group.waitForAll()
    }
    try await Self.expectWhole(large, TestObjectStore.store(prefix: prefix))
  }

  /// - The parts were joined, and the server stopped before it knew
  /// => the repeated completion finds the content
  @Test func aCompletionWhoseOutcomeIsUnknown_isFoundLater() async throws {
    let prefix = "t-\(BlobID.random().text)"
    let store = try TestObjectStore.store(prefix: prefix)
    let large = Large()
    for index in 0..<3 { try await Self.put(index, large, store) }
    _ = try await store.contentRoot(large.blob, cipherLength: large.length)
    let leftover = try TestObjectStore.client(prefix: prefix)
    try await leftover.put(store.keys.part(0, large.blob), ByteBuffer(string: "left"))
    try await Self.expectWhole(large, TestObjectStore.store(prefix: prefix))
    #expect(try await leftover.list(store.keys.allParts).0 == [])
  }

  /// - An upload was ended by someone else, such as a lifecycle rule of the bucket
  /// => its parts are lost, and a part that comes later does not hide that
  @Test func anUploadThatIsGone_isLost() async throws {
    let store = try TestObjectStore.store()
    let large = Large()
    try await Self.put(0, large, store)
    for upload in try await store.client.uploads(of: store.keys.content(large.blob)) {
      try await store.client.abort(upload)
    }
    await #expect(throws: BlobStoreFailure.self) { try await Self.put(1, large, store) }
    for index in [1, 2] { try await Self.put(index, large, store) }
    await #expect(throws: BlobLost.self) {
      try await store.contentRoot(large.blob, cipherLength: large.length)
    }
  }

  @Test func listsAreReadToTheirEnd() async throws {
    let client = try TestObjectStore.client()
    let prefix = client.address.prefix
    let keys = (10..<35).map { "\(prefix)c/\($0)" }
    _ = try await concurrently(keys, limit: 8) { try await client.put($0, ByteBuffer(string: "x")) }
    var (found, token) = try await client.list(prefix, limit: 10)
    while let next = token {
      let page = try await client.list(prefix, after: next, limit: 10)
      (found, token) = (found + page.0, page.1)
    }
    #expect(found == keys)
    try await client.delete(keys)
    #expect(try await client.list(prefix).0 == [])
  }

  // MARK: the start of a server

  private static func open(
    _ prefix: String, owner: String = "me", bucket: String = TestObjectStore.bucket,
    _ change: (inout S3Credentials) -> Void = { _ in }
  ) async throws -> S3BlobStore {
    var credentials = try TestObjectStore.credentials()
    change(&credentials)
    return try await S3BlobStore.open(
      TestObjectStore.address(prefix: prefix, bucket: bucket), credentials: credentials, region: "us-east-1",
      owner: owner)
  }

  private static func refusal(_ body: () async throws -> S3BlobStore) async -> String {
    do {
      _ = try await body()
      return "none"
    } catch let error as S3OpenError { return "\(error.reason): \(error)" } catch { return "\(error)" }
  }

  @Test func refusalsAtTheStart() async throws {
    let prefix = "t-\(BlobID.random().text)"
    let place = try TestObjectStore.address(prefix: prefix)
    #expect(
      await Self.refusal { try await Self.open(prefix) { $0.secret = "wrong" } }
        == "refused: \(place) refuses the signature: the secret key or the region is wrong")
    #expect(
      await Self.refusal { try await Self.open(prefix) { $0.keyID = "unknown" } }
        == "refused: \(place) does not know the access key")
    let missing = try TestObjectStore.address(prefix: prefix, bucket: "zdc-none")
    #expect(
      await Self.refusal { try await Self.open(prefix, bucket: "zdc-none") }
        == "noBucket: the bucket of \(missing) does not exist")
  }

  @Test func aBucketBelongsToOneServer() async throws {
    let prefix = "t-\(BlobID.random().text)"
    let place = try TestObjectStore.address(prefix: prefix)
    let store = try await Self.open(prefix)
    try await Self.put(0, Large(70_000), store)
    _ = try await Self.open(prefix)
    #expect(
      await Self.refusal { try await Self.open(prefix, owner: "other") }
        == "notOurs: \(place) has blobs of another server; this server would remove them")
    try await store.client.delete([store.keys.owner])
    #expect(
      await Self.refusal { try await Self.open(prefix) }
        == "notOurs: \(place) has blobs of an unknown server; this server would remove them")
  }
}
