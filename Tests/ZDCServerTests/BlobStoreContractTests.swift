import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerMemory
import ZDCServerSQLite

/// The contract of every blob store. A new store is one more line in `stores`.
@Suite struct BlobStoreContractTests {
  struct Maker: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let open: @Sendable (_ folder: String) throws -> any BlobStore
  }

  static let stores =
    [
      Maker(testDescription: "folder") { try FolderBlobStore(folder: $0) },
      Maker(testDescription: "memory") { _ in MemoryBlobStore() },
    ] + (TestObjectStore.isThere ? [Maker(testDescription: "S3") { _ in try TestObjectStore.store() }] : [])

  private static func withStore(_ maker: Maker, _ body: (any BlobStore) async throws -> Void) async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await body(try maker.open(folder))
  }

  typealias Large = BlobTests.Large

  /// Writes a part in slices that do not end where leaves do.
  private static func put(
    _ index: Int, _ large: Large, _ store: any BlobStore, bytes: [UInt8]? = nil, finishing: Bool = true
  ) async throws {
    let bytes = bytes ?? large.part(index)
    let writer = try await store.openPart(large.blob, index: index, cipherLength: large.length)
    for start in stride(from: 0, to: bytes.count, by: 100_001) {
      try await writer.write(Array(bytes[start..<min(start + 100_001, bytes.count)]))
    }
    guard finishing else { return await writer.abandon() }
    #expect(try await writer.finish() == large.hash(ofPart: index, bytes))
  }

  private static func putAll(_ large: Large, _ store: any BlobStore) async throws {
    let parts = ContentGeometry.partCount(cipherLength: large.length)
    for index in (0..<parts).reversed() { try await put(index, large, store) }
  }

  private static func expectWhole(_ large: Large, _ store: any BlobStore) async throws {
    #expect(try await store.contentRoot(large.blob, cipherLength: large.length) == large.root)
    #expect(try await store.read(large.blob, range: 0..<large.length) == large.bytes)
  }

  @Test(arguments: stores, [nil, 70_000] as [Int?])
  func partsInAnyOrder_thenTheRoot_thenRanges(_ maker: Maker, length: Int?) async throws {
    try await Self.withStore(maker) { (store: any BlobStore) async throws in
      let large = Large(length)
      try await Self.putAll(large, store)
      try await Self.expectWhole(large, store)
      for range in [0..<1, 1..<2, 60_000..<70_000, large.length - 1..<large.length] as [Range<UInt64>] {
        let expected = Array(large.bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        #expect(try await store.read(large.blob, range: range) == expected)
      }
      // The answer may have been lost, so that the client asks again.
      try await Self.expectWhole(large, store)
    }
  }

  @Test(arguments: stores, [nil, 70_000] as [Int?])
  func hashesAndProofs(_ maker: Maker, length: Int?) async throws {
    try await Self.withStore(maker) { (store: any BlobStore) async throws in
      let large = Large(length)
      try await Self.putAll(large, store)
      _ = try await store.contentRoot(large.blob, cipherLength: large.length)
      let hashes = large.leafHashes
      let leaves = UInt64(hashes.count)
      let last = try await store.leafHashes(large.blob, first: leaves - 1, count: 1)
      #expect(last == hashes.last?.bytes)
      let all = try await store.leafHashes(large.blob, first: 0, count: hashes.count)
      #expect(all == hashes.flatMap(\.bytes))
      for leaf in Set([0, leaves / 2, leaves - 1]) {
        let subtrees = MerkleTree.proofSubtrees(leafCount: leaves, leaves: [leaf..<leaf + 1])
        var reader = ByteReader(try await store.proof(large.blob, of: subtrees, leafCount: leaves))
        var proof: [MerkleHash] = []
        while reader.remaining > 0 { proof.append(try reader.read32()) }
        let root = MerkleTree.root(
          leafCount: leaves, leaves: [leaf..<leaf + 1], leafHashes: [hashes[Int(leaf)]], proof: proof)
        #expect(root == MerkleHash(reinterpreting: large.root))
      }
    }
  }

  @Test(arguments: stores) func partsAtTheSameTime(_ maker: Maker) async throws {
    try await Self.withStore(maker) { (store: any BlobStore) async throws in
      let large = Large()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<3 { group.addTask { try await Self.put(index, large, store) } }
        try await group.waitForAll()
      }
      try await Self.expectWhole(large, store)
    }
  }

  /// - A part is abandoned, then sent with wrong bytes, then with the right ones
  /// => the last attempt is what is stored
  @Test(arguments: stores, [nil, 70_000] as [Int?])
  func theLastAttemptCounts(_ maker: Maker, length: Int?) async throws {
    try await Self.withStore(maker) { (store: any BlobStore) async throws in
      let large = Large(length)
      try await Self.put(0, large, store, finishing: false)
      try await Self.put(0, large, store, bytes: randomBytes(large.part(0).count))
      try await Self.putAll(large, store)
      try await Self.expectWhole(large, store)
    }
  }

  @Test(arguments: stores) func contentWithoutAllParts_hasNoRoot_andCanBeContinued(_ maker: Maker) async throws {
    try await Self.withStore(maker) { (store: any BlobStore) async throws in
      let large = Large()
      for index in [0, 2] { try await Self.put(index, large, store) }
      await #expect(throws: (any Error).self) {
        // A folder cannot tell a hole from zeros; the rows of the parts do.
        guard try await store.contentRoot(large.blob, cipherLength: large.length) == large.root else {
          throw BlobLost()
        }
      }
      try await Self.put(1, large, store)
      try await Self.expectWhole(large, store)
    }
  }

  @Test(arguments: stores) func whatIsNotStored_isLost(_ maker: Maker) async throws {
    try await Self.withStore(maker) { (store: any BlobStore) async throws in
      let blob = BlobID.random()
      await #expect(throws: BlobLost.self) { try await store.open(blob, range: 0..<1) }
      await #expect(throws: BlobLost.self) { try await store.leafHashes(blob, first: 0, count: 1) }
      await #expect(throws: BlobLost.self) { try await store.proof(blob, of: [0..<1], leafCount: 2) }
      await #expect(throws: (any Error).self) { try await store.contentRoot(blob, cipherLength: 70_000) }
      await #expect(throws: (any Error).self) { try await store.contentRoot(blob, cipherLength: 20_000_000) }
      try await store.remove([blob])
      #expect(try await store.all() == [])
      let large = Large(70_000)
      try await Self.putAll(large, store)
      _ = try await store.contentRoot(large.blob, cipherLength: large.length)
      for range in [0..<70_001, 70_000..<70_001, 80_000..<80_001] as [Range<UInt64>] {
        await #expect(throws: BlobLost.self) { try await store.open(large.blob, range: range) }
      }
      await #expect(throws: BlobLost.self) { try await store.leafHashes(large.blob, first: 1, count: 2) }
    }
  }

  /// Finished ones, unfinished ones, and those of which only one of several parts is there.
  @Test(arguments: stores) func removedBlobsAreGone_andOnlyThey(_ maker: Maker) async throws {
    try await Self.withStore(maker) { (store: any BlobStore) async throws in
      let (kept, small, finished, begun) = (Large(70_000), Large(80_000), Large(), Large())
      for large in [kept, small, finished] {
        try await Self.putAll(large, store)
        _ = try await store.contentRoot(large.blob, cipherLength: large.length)
      }
      try await Self.put(1, begun, store)
      #expect(try await Set(store.all()) == [kept.blob, small.blob, finished.blob, begun.blob])
      try await store.remove([small.blob, finished.blob, begun.blob, .random()])
      #expect(try await store.all() == [kept.blob])
      await #expect(throws: BlobLost.self) { try await store.open(finished.blob, range: 0..<1) }
      await #expect(throws: BlobLost.self) { try await store.leafHashes(finished.blob, first: 0, count: 1) }
      await #expect(throws: (any Error).self) {
        // The folder leaves holes where nothing was written, so its root is wrong, not missing.
        guard try await store.contentRoot(begun.blob, cipherLength: begun.length) == begun.root else {
          throw BlobLost()
        }
      }
      try await Self.expectWhole(kept, store)
      try await store.probeFreeSpace()
      #expect(try await store.all() == [kept.blob])
      // The ID may be used again.
      try await Self.putAll(begun, store)
      try await Self.expectWhole(begun, store)
    }
  }

  /// - An upload begins, and begins again after a failure; then a range of it is read
  /// => it comes in slices of a few leaves; the store lists it once all its parts are there, however often it began
  @Test(arguments: stores) func contentIsReadInSlices_andIsListed(_ maker: Maker) async throws {
    try await Self.withStore(maker) { (store: any BlobStore) async throws in
      let large = Large()
      for _ in 0..<2 { try await store.begin(large.blob, cipherLength: large.length) }
      try await Self.putAll(large, store)
      _ = try await store.contentRoot(large.blob, cipherLength: large.length)
      let range = 1_000..<large.length - 1
      let reader = try await store.open(large.blob, range: range)
      var slices: [[UInt8]] = []
      while let slice = try await reader.next() { slices.append(slice) }
      #expect(slices.flatMap(\.self) == Array(large.bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
      #expect(slices.allSatisfy { !$0.isEmpty && $0.count <= 1 << 20 })
      let listed = Mutex<Set<BlobID>>([])
      try await store.forEachBatch { batch in listed.withLock { $0.formUnion(batch) } }
      #expect(listed.withLock { $0 } == [large.blob])
    }
  }
}
