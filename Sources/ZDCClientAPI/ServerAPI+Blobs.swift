package import ZDCProtocol

extension ServerAPI {
  package func openBlob(_ ticket: BlobTicketRequest) async throws -> BlobStatus {
    try await json(.json(.post, Routes.blobs, ticket))
  }

  /// Returns which parts of an upload the server has.
  package func blobStatus(_ blob: BlobID) async throws -> BlobStatus {
    try await json(.get(Routes.path(Routes.blobParts, blob.text)))
  }

  /// Uploads one part, identified by its hash. The same part may be sent again; a different one under the same index is
  /// refused.
  package func putPart(
    _ blob: BlobID, index: Int, bytes: [UInt8], hash: [UInt8], taken: @escaping @Sendable () -> Void = {}
  ) async throws {
    var request = Self.partRequest(blob, index: index, body: .bytes(bytes), hash: hash)
    request.bodyTaken = taken
    _ = try await answer(to: request, limit: Limits.jsonBytes)
  }

  static func partRequest(
    _ blob: BlobID, index: Int, body: TransportRequest.Body, hash: [UInt8]
  ) -> TransportRequest {
    let headers = ["content-type": TransportRequest.octetType, WireHeaders.partHash: ZBase32.encode(hash)]
    return TransportRequest(.put, Routes.path(Routes.blobPart, blob.text, String(index)), headers: headers, body: body)
  }

  package func completeBlob(_ blob: BlobID) async throws -> BlobStatus {
    try await json(TransportRequest(.post, Routes.path(Routes.blobComplete, blob.text)))
  }

  /// Aborts an upload that no commit refers to.
  package func abortBlob(_ blob: BlobID) async throws {
    _ = try await answer(to: TransportRequest(.delete, Routes.path(Routes.blob, blob.text)), limit: Limits.jsonBytes)
  }

  /// Downloads the ciphertext of one content blob, or a range of it, as a stream.
  ///
  /// - Returns: The length that the server announces, which is that of the range if there is one, and the bytes.
  package func content(
    _ zone: ZoneID, node: NodeID, blob: BlobID, range: Range<UInt64>? = nil
  ) async throws -> (length: UInt64, body: TransportBody) {
    let request = Self.contentRequest(zone, node: node, blob: blob, range: range)
    let response: TransportResponse
    do {
      response = try await open(request)
    } catch let error as ServerError where error.code == .notFound {
      // The verified log says that the content exists, and "not found" does not mean deleted.
      throw ZDCSecurityError(.objectMissing, zone: zone, node: node)
    }
    let isWhole = range?.isEmpty ?? true
    guard response.status == (isWhole ? 200 : 206),
      let length = response.headers["content-length"].flatMap(UInt64.init)
    else { throw TransportError(.badAnswer, origin: connection.origin) }
    return (length, response.body)
  }

  /// - Parameter range: Nil or empty for the whole content.
  static func contentRequest(
    _ zone: ZoneID, node: NodeID, blob: BlobID, range: Range<UInt64>?
  ) -> TransportRequest {
    var request = TransportRequest.get(Routes.path(Routes.content, zone.tree.text, node.text, blob.text))
    if let range, !range.isEmpty {
      request.headers["range"] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
    }
    return request
  }

  /// Downloads leaf hashes of one content blob, 32 bytes each. Maximum 131,072 per request.
  package func leafHashes(
    _ zone: ZoneID, node: NodeID, blob: BlobID, from: UInt64, count: Int
  ) async throws -> [UInt8] {
    let path = Routes.path(Routes.leafHashes, zone.tree.text, node.text, blob.text)
    let request = TransportRequest.get(path, query: [("from", String(from)), ("count", String(count))])
    return try await answer(to: request, limit: 32 * count).body
  }

  /// Downloads the hashes that prove the first leaf of one content blob and the given leaves, 32 bytes each
  /// (PROTOCOL 3.8).
  package func leafProof(
    _ zone: ZoneID, node: NodeID, blob: BlobID, leaves: Range<UInt64>
  ) async throws -> [UInt8] {
    let request = Self.proofRequest(zone, node: node, blob: blob, leaves: leaves)
    return try await answer(to: request, limit: Limits.leafProofBytes).body
  }

  static func proofRequest(
    _ zone: ZoneID, node: NodeID, blob: BlobID, leaves: Range<UInt64>
  ) -> TransportRequest {
    let path = Routes.path(Routes.leafProof, zone.tree.text, node.text, blob.text)
    let query = [("from", String(leaves.lowerBound)), ("count", String(leaves.upperBound - leaves.lowerBound))]
    return .get(path, query: query)
  }
}
