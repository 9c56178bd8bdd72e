internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

/// Fetches one content in a streamed request.
struct ContentFetch: Sendable {
  typealias Progress = @Sendable (_ received: UInt64) -> Void

  let api: ServerAPI
  let target: ContentTarget

  /// Writes the ciphertext to a new file and returns it once the root over all of it is the record's.
  ///
  /// A connection that breaks off is continued where it stopped, as long as each one brings something.
  func download(to url: URL, progress: Progress) async throws -> ZDCCryptoFile {
    let file = try LocalFile.create(url)
    do {
      var verifier = StreamVerifier(target.reference)
      try await receive(from: { verifier.received }) { slice in
        try verifier.push(slice)
        try file.write(slice)
        progress(verifier.received)
      }
      return ZDCCryptoFile(fileURL: url, reference: target.reference, leaves: try verifier.finish())
    } catch {
      DownloadFolder.remove(url)
      throw error
    }
  }

  /// Opens the content as it comes and writes its data to a new file: no ciphertext touches the disk.
  ///
  /// - Returns: the metadata.
  func open(to url: URL, progress: Progress) async throws -> [UInt8] {
    let opener = ContentOpener(target.reference, leaves: try await leaves())
    let file = try LocalFile.create(url)
    do {
      var metadata: [UInt8] = []
      var received: UInt64 = 0
      try await receive(from: { received }) { slice in
        try opener.push(slice) { section, bytes in
          switch section {
          case .metadata: metadata += bytes
          case .thumbnail: break
          case .data: try file.write(bytes)
          }
        }
        received += UInt64(slice.count)
        progress(received)
      }
      try opener.finish()
      return metadata
    } catch {
      DownloadFolder.remove(url)
      throw error
    }
  }

  private func receive(
    from position: () -> UInt64, _ take: ([UInt8]) throws -> Void
  ) async throws {
    while position() < target.cipherLength {
      let start = position()
      do {
        try await receiveOnce(from: start, take)
      } catch let error as TransportError where error.isTemporary && position() > start {
        continue
      }
      try require(position() > start, .contentTruncated, node: target.node)
    }
  }

  private func receiveOnce(from start: UInt64, _ take: ([UInt8]) throws -> Void) async throws {
    let range = start == 0 ? nil : start..<target.cipherLength
    let (length, body) = try await api.content(target.zone, node: target.node, blob: target.blob, range: range)
    let expected = target.cipherLength - start
    try require(length >= expected, .contentTruncated, node: target.node)
    try require(length <= expected, .contentTrailingData, node: target.node)
    while let slice = try await body.next() { try take(slice) }
  }

  // MARK: Parts

  private static let hashesPerRequest: UInt64 = 131_072

  /// The hashes of all leaves, verified against the record's root. A content of one leaf needs no request.
  private func leaves() async throws -> ContentLeaves {
    let count = target.reference.layout.leafCount
    guard count > 1 else { return try ContentLeaves(for: target.reference) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(count) * 32)
    while UInt64(bytes.count) < count * 32 {
      let from = UInt64(bytes.count / 32)
      let part = try await api.leafHashes(
        target.zone, node: target.node, blob: target.blob, from: from,
        count: Int(min(count - from, Self.hashesPerRequest)))
      try require(!part.isEmpty && part.count % 32 == 0, .contentHashMismatch, node: target.node)
      bytes += part
    }
    return try ContentLeaves(bytes: bytes, for: target.reference)
  }

  /// Fetches and opens sections without the rest of the content.
  func sections(_ wanted: [ContentSection]) async throws -> [ContentSection: [UInt8]] {
    var reader = ContentReader(target.reference, leaves: try await leaves())
    var sections: [ContentSection: [UInt8]] = [:]
    for section in wanted {
      let plan = reader.plan(section)
      var fetched: [[UInt8]] = []
      for range in plan.fetches {
        let (_, body) = try await api.content(
          target.zone, node: target.node, blob: target.blob, range: range)
        fetched.append(try await body.collect(upTo: range.count, expected: range.count))
      }
      sections[section] = try reader.read(plan, fetched: fetched)
    }
    return sections
  }
}
