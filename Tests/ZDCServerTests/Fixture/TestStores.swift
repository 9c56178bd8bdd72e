import Foundation
import Synchronization
import Testing
import ZDCServer
import ZDCServerMemory
import ZDCServerS3
import ZDCServerSQLite

/// The stores of a test's server: a folder, or memory with `ZDC_TEST_STORE=memory`, or a folder and an object store with
/// `ZDC_TEST_BLOBS=s3`. Every test of the server's answers runs over all.
struct TestStores {
  let metadata: any MetadataStore
  var blobs: any BlobStore
  /// Holds the folder's lock.
  private var folder: DataFolder?

  static let areInMemory = ProcessInfo.processInfo.environment["ZDC_TEST_STORE"] == "memory"

  static let areInObjectStore = ProcessInfo.processInfo.environment["ZDC_TEST_BLOBS"] == "s3"

  /// Memory that a server left, by the name of its folder.
  private static let memories = Mutex<[String: (MemoryStore, MemoryBlobStore)]>([:])

  static func open(_ path: String) throws -> TestStores {
    guard areInMemory else {
      let folder = try DataFolder(path: path)
      if areInObjectStore {
        let blobs = try TestObjectStore.store(prefix: URL(fileURLWithPath: path).lastPathComponent)
        return TestStores(metadata: folder.metadata, blobs: blobs, folder: folder)
      }
      return TestStores(metadata: folder.metadata, blobs: folder.blobs, folder: folder)
    }
    let (metadata, blobs) = memories.withLock { memories in
      let known = memories[path] ?? (MemoryStore(), MemoryBlobStore())
      memories[path] = known
      return known
    }
    return TestStores(metadata: metadata, blobs: blobs)
  }

  /// The findings of `zdc-server check` in a folder that no server uses.
  static func findings(in path: String) throws -> [CheckFinding] {
    areInMemory || areInObjectStore ? [] : try DataFolder.check(path: path).findings
  }

  static func forget(_ path: String) { memories.withLock { $0[path] = nil } }
}

extension Trait where Self == ConditionTrait {
  /// For tests that look into the data folder, damage it, or run the server's program.
  static var needsFolder: Self {
    .disabled(if: TestStores.areInMemory || TestStores.areInObjectStore, "these stores have no folder")
  }
}
