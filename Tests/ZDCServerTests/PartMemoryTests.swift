import Synchronization
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerMemory

/// A store that holds parts in memory: each counts as a body of the user who sends it, while it is received.
@Suite struct PartMemoryTests {
  private final class BufferingStore: BlobStore {
    let memory = MemoryBlobStore()
    let begun = Mutex<[BlobID]>([])
    var buffersParts: Bool { true }

    func begin(_ blob: BlobID, cipherLength: UInt64) async throws { begun.withLock { $0.append(blob) } }

    func openPart(_ blob: BlobID, index: Int, cipherLength: UInt64) async throws -> any BlobPartWriter {
      try await memory.openPart(blob, index: index, cipherLength: cipherLength)
    }

    func contentRoot(_ blob: BlobID, cipherLength: UInt64) async throws -> ContentRoot {
      try await memory.contentRoot(blob, cipherLength: cipherLength)
    }

    func open(_ blob: BlobID, range: Range<UInt64>) async throws -> any BlobReader {
      try await memory.open(blob, range: range)
    }

    func leafHashes(_ blob: BlobID, first: UInt64, count: Int) async throws -> [UInt8] {
      try await memory.leafHashes(blob, first: first, count: count)
    }

    func proof(_ blob: BlobID, of subtrees: [Range<UInt64>], leafCount: UInt64) async throws -> [UInt8] {
      try await memory.proof(blob, of: subtrees, leafCount: leafCount)
    }

    func remove(_ blobs: [BlobID]) async throws { try await memory.remove(blobs) }
    func probeFreeSpace() async throws {}
    func forEachBatch(_ body: @Sendable ([BlobID]) async throws -> Void) async throws {
      try await memory.forEachBatch(body)
    }
  }

  private static func put(_ large: BlobTests.Large, blobs: any BlobStore, limit: Int) async throws -> Answer {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    return try await TestServer.run(in: folder, blobs: blobs, { $0.bounds.bufferedBodyBytes = limit }) {
      (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      _ = try await server.ticket(large, .random(), account.home, token: token).expect(201)
      let answer = try await server.part(0, of: large, token: token)
      #expect(server.server.bufferedBytes == 0)
      return answer
    }
  }

  /// - A ticket is requested twice
  /// => the store prepares for the upload once, before the answer: no other request can begin it at the same time
  @Test func aNewTicketBeginsTheUpload() async throws {
    let (store, large) = (BufferingStore(), BlobTests.Large(70_000))
    try await TestServer.run(blobs: store) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let node = NodeID.random()
      for _ in 0..<2 { _ = try await server.ticket(large, node, account.home, token: token).expect(201) }
      #expect(store.begun.withLock { $0 } == [large.blob])
    }
  }

  /// A user may take an eighth of the memory.
  @Test func aPartThatDoesNotFitIsRefused_untilItDoes() async throws {
    let large = BlobTests.Large(70_000)
    let refused = try await Self.put(large, blobs: BufferingStore(), limit: 8 * 69_999)
    #expect((refused.status, refused.error?.code, refused.error?.retryable) == (429, .tooManyRequests, true))
    #expect(try await Self.put(large, blobs: BufferingStore(), limit: 8 * 70_000).status == 204)
    #expect(try await Self.put(large, blobs: MemoryBlobStore(), limit: 8 * 69_999).status == 204)
  }
}
