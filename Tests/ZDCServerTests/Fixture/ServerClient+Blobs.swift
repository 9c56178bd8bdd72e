import ZDCProtocol

extension ServerClient {
  func ticket(_ large: BlobTests.Large, _ node: NodeID, _ zone: TestZone, token: [UInt8]) async throws -> Answer {
    let request = BlobTicketRequest(
      blobID: large.blob, treeID: zone.zone.tree, nodeID: node, cipherLength: large.length)
    return try await sendJSON(.POST, Routes.blobs, request, token: token)
  }

  func part(_ index: Int, of large: BlobTests.Large, token: [UInt8]) async throws -> Answer {
    let bytes = large.part(index)
    return try await send(
      .PUT, Routes.path(Routes.blobPart, large.blob.text, "\(index)"), token: token,
      headers: [(WireHeaders.partHash, ZBase32.encode(large.hash(ofPart: index, bytes)))], body: bytes)
  }

  func parts(of large: BlobTests.Large, token: [UInt8]) async throws -> BlobStatus {
    try await send(.GET, Routes.path(Routes.blobParts, large.blob.text), token: token).json()
  }

  func complete(_ large: BlobTests.Large, token: [UInt8]) async throws -> Answer {
    try await send(.POST, Routes.path(Routes.blobComplete, large.blob.text), token: token)
  }

  /// A whole upload, attached to nothing.
  func upload(_ large: BlobTests.Large, _ node: NodeID, _ zone: TestZone, token: [UInt8]) async throws {
    _ = try await ticket(large, node, zone, token: token).expect(201)
    for index in 0..<ContentGeometry.partCount(cipherLength: large.length) {
      _ = try await part(index, of: large, token: token).expect(204)
    }
    _ = try await complete(large, token: token).expect(200)
  }

  func content(_ blob: BlobID, of node: NodeID, in zone: TestZone, token: [UInt8]) async throws -> Answer {
    try await send(.GET, Routes.path(Routes.content, zone.zone.tree.text, node.text, blob.text), token: token)
  }
}
