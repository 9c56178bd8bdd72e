internal import Crypto
internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

/// Seals a large content as a stream and sends it in parts, holding about one part in memory.
///
/// Every attempt has a fresh salt, key and blob id; a source that changes while it is read ends the attempt.
struct ContentUpload {
  let api: ServerAPI
  let tree: TreeID
  let node: NodeID
  let progress: @Sendable (_ sent: UInt64, _ total: UInt64) -> Void

  /// - Throws: `CryptoFailure.sourceChanged` if the source has another length or time at the end than at the start;
  ///   `ServerError`, `TransportError`, `CancellationError`.
  func send(_ source: ContentSource, metadata: [UInt8], thumbnail: [UInt8]) async throws -> SuppliedContent {
    let sealer = try ContentSealer(metadata: metadata, thumbnail: thumbnail, dataSize: source.size)
    let total = sealer.cipherLength
    _ = try await api.openBlob(
      BlobTicketRequest(blobID: sealer.blobID, treeID: tree, nodeID: node, cipherLength: total))
    var parts = PartAssembler(cipherLength: total)
    var reader = try source.open()
    while let slice = try reader.next() {
      try sealer.push(slice) { parts.append($0.bytes) }
      try await send(&parts, of: sealer.blobID, total: total)
    }
    let fields = try sealer.finish(dataVersion: 1) { parts.append($0.bytes) }
    try source.checkUnchanged()
    try await send(&parts, of: sealer.blobID, total: total)
    let status = try await api.completeBlob(sealer.blobID)
    guard status.contentRoot == fields.contentRoot else { throw ZDCSecurityError(.contentHashMismatch, node: node) }
    return .uploaded(fields, sealer.secrets)
  }

  private func send(_ parts: inout PartAssembler, of blob: BlobID, total: UInt64) async throws {
    while let part = parts.next() {
      try Task.checkCancellation()
      try await api.putPart(blob, index: part.index, bytes: part.bytes)
      progress(parts.handedOut, total)
    }
  }
}

/// Cuts the sealed stream into parts that end on leaf borders. Pure.
struct PartAssembler {
  private let cipherLength: UInt64
  private var buffer: [UInt8] = []
  private var index = 0
  private(set) var handedOut: UInt64 = 0

  init(cipherLength: UInt64) {
    self.cipherLength = cipherLength
  }

  mutating func append(_ bytes: [UInt8]) {
    buffer += bytes
  }

  /// The next part, once all of it is there.
  mutating func next() -> (index: Int, bytes: [UInt8])? {
    guard index < ContentGeometry.partCount(cipherLength: cipherLength) else { return nil }
    let length = ContentGeometry.partRange(index, cipherLength: cipherLength).count
    guard buffer.count >= length else { return nil }
    let part = buffer.count == length ? buffer : Array(buffer.prefix(length))
    buffer = Array(buffer.dropFirst(length))
    defer { index += 1 }
    handedOut += UInt64(length)
    return (index, part)
  }
}
