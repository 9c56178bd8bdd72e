internal import NIOCore

// The start of a server.
extension S3BlobStore {
  /// Opens the store, and takes possession of an empty one.
  ///
  /// A server removes blobs that its database does not know. So the bucket names the server that it belongs to, and a
  /// server with another database is refused.
  ///
  /// - Parameter owner: the ID of the server, the same at every start.
  /// - Throws: ``S3OpenError``.
  package static func open(
    _ address: S3Address, credentials: S3Credentials, region: String, owner: String
  ) async throws -> S3BlobStore {
    let store = S3BlobStore(client: S3Client(address: address, credentials: credentials, region: region))
    do { try await store.checkOwner(owner) } catch let failure as S3Failure {
      throw S3OpenError(failure, address: address)
    }
    return store
  }

  private func checkOwner(_ owner: String) async throws {
    do {
      let found = String(decoding: try await client.get(keys.owner, upTo: 1_024), as: UTF8.self)
      guard found == owner else { throw notOurs("blobs of another server") }
    } catch let failure as S3Failure where failure.isMissing {
      for folder in [keys.contents, keys.allLeaves] {
        guard try await client.list(folder, limit: 1).0.isEmpty else { throw notOurs("blobs of an unknown server") }
      }
      try await client.put(keys.owner, ByteBuffer(string: owner))
    }
  }

  private func notOurs(_ what: String) -> S3OpenError {
    S3OpenError(.notOurs, "\(client.address) has \(what); this server would remove them")
  }
}

extension S3OpenError {
  init(_ failure: S3Failure, address: S3Address) {
    switch failure.code {
    case "NoSuchBucket": self.init(.noBucket, "the bucket of \(address) does not exist")
    case "InvalidAccessKeyId": self.init(.refused, "\(address) does not know the access key")
    case "SignatureDoesNotMatch":
      self.init(.refused, "\(address) refuses the signature: the secret key or the region is wrong")
    case "RequestTimeTooSkewed":
      self.init(.refused, "\(address) refuses the time of this machine, which must be right within 15 minutes")
    case "AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect":
      self.init(.refused, "\(address) is in another region")
    default:
      if failure.status == 403 {
        self.init(.refused, "\(address) denies access (\(failure.code)): the key needs to read, write, list and delete")
      } else {
        self.init(.unavailable, "\(address) cannot be used: \(failure)")
      }
    }
  }
}
