import Foundation
import NIOHTTP1
import Testing
import ZDCProtocol
import ZDCServer

@testable import ZDCServerS3

/// The object store of `make test-s3`: `Scripts/object-store` starts it and names it in the environment.
enum TestObjectStore {
  static let bucket = "zdc-tests"
  static let isThere = ProcessInfo.processInfo.environment["ZDC_TEST_S3"] != nil

  private static let environment = ProcessInfo.processInfo.environment

  static func credentials() throws -> S3Credentials { try S3Credentials(environment: environment) }

  /// - Parameter prefix: keeps the blobs of a test apart.
  static func address(prefix: String = "t-\(UUID().uuidString)", bucket: String = bucket) throws -> S3Address {
    let authority = try #require(environment["ZDC_TEST_S3"], "ZDC_TEST_S3 is missing: run make test-s3")
    return try S3Address("s3+http://\(bucket)@\(authority)/\(prefix)")
  }

  static func client(prefix: String = "t-\(UUID().uuidString)", bounds: S3Client.Bounds = .init()) throws -> S3Client {
    S3Client(
      address: try address(prefix: prefix), credentials: try credentials(), region: "us-east-1", bounds: bounds)
  }

  static func store(prefix: String = "t-\(UUID().uuidString)") throws -> S3BlobStore {
    S3BlobStore(client: try client(prefix: prefix))
  }
}

extension Trait where Self == ConditionTrait {
  static var needsObjectStore: Self { .enabled(if: TestObjectStore.isThere, "make test-s3 runs these") }
}

extension BlobStore {
  /// All blobs of which anything is stored.
  func all() async throws -> [BlobID] {
    let found = FoundBlobs()
    try await forEachBatch { await found.insert($0) }
    return await Array(found.blobs)
  }

  /// The bytes of a range.
  func read(_ blob: BlobID, range: Range<UInt64>) async throws -> [UInt8] {
    let reader = try await open(blob, range: range)
    var bytes: [UInt8] = []
    while let slice = try await reader.next() { bytes += slice }
    return bytes
  }
}

private actor FoundBlobs {
  private(set) var blobs: Set<BlobID> = []
  func insert(_ more: [BlobID]) { blobs.formUnion(more) }
}
