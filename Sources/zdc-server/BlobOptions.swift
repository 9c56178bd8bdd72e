import ArgumentParser
import Foundation
import ZDCServer
import ZDCServerS3
import ZDCServerSQLite

/// The options that say where large content is stored.
struct BlobOptions: ParsableArguments {
  @Option(
    name: .long,
    help: """
      Store large content in a bucket: s3://BUCKET@HOST[:PORT][/PREFIX]; s3+http:// for a store on this machine. \
      The key is read from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. (default: the data folder)
      """)
  var blobs: String?

  @Option(name: .long, help: "The region of the bucket, for its signatures.")
  var blobsRegion = "us-east-1"

  @Option(name: .long, help: "A file with the bucket's key, a line NAME=VALUE for each variable of --blobs.")
  var blobsKeyFile: String?

  var place: BlobPlace { BlobPlace(address: blobs, region: blobsRegion, keyFile: blobsKeyFile) }
}

/// Where large content is stored.
struct BlobPlace {
  /// Nil for the data folder.
  var address: String?
  var region: String
  var keyFile: String?

  /// Opens the store for large content, or takes possession of an empty bucket.
  ///
  /// - Throws: ``Failure``.
  func store(beside folder: ContentFolder) async throws -> any BlobStore {
    try await Failure.translating {
      let owner = try folder.objectStoreOwner()
      guard let address else {
        guard owner == nil else {
          throw Failure(.usage, "this server's large content is in an object store", hint: "give its address: --blobs")
        }
        return folder.blobs
      }
      return try await open(S3Address(address), owner: owner, folder)
    }
  }

  /// Opens a store that has the large content of this folder already.
  ///
  /// - Throws: ``Failure``.
  func existingStore(beside folder: ContentFolder) async throws -> any BlobStore {
    guard try address == nil || folder.objectStoreOwner() != nil else {
      throw Failure(.usage, "this server's large content is in the data folder", hint: "omit --blobs")
    }
    return try await store(beside: folder)
  }

  private func open(_ address: S3Address, owner: String?, _ folder: ContentFolder) async throws -> any BlobStore {
    let credentials = try credentials()
    if let owner { return try await open(address, credentials, owner) }
    let new = try await folder.createObjectStoreOwner()
    do { return try await open(address, credentials, new) } catch {
      try folder.removeObjectStoreOwner()
      throw error
    }
  }

  private func open(_ address: S3Address, _ key: S3Credentials, _ owner: String) async throws -> S3BlobStore {
    try await S3BlobStore.open(address, credentials: key, region: region, owner: owner)
  }

  private func credentials() throws -> S3Credentials {
    guard let keyFile else { return try S3Credentials(environment: ProcessInfo.processInfo.environment) }
    guard let bytes = FileManager.default.contents(atPath: keyFile) else {
      throw Failure(.noInput, "cannot read \(keyFile)")
    }
    return try S3Credentials(file: String(decoding: bytes, as: UTF8.self))
  }
}

extension Failure {
  init(_ error: S3OpenError) {
    let status: ExitStatus =
      switch error.reason {
      case .noCredentials, .address: .usage
      case .refused: .noPermission
      case .noBucket: .noInput
      case .unavailable, .notOurs: .unavailable
      }
    let hint: String? =
      switch error.reason {
      case .noBucket: "create it; the server does not"
      case .notOurs: "choose another bucket or prefix, or restore the data folder that belongs to it"
      default: nil
      }
    self.init(status, error.description, hint: hint)
  }
}
