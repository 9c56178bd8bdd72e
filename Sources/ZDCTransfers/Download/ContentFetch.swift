internal import Foundation
internal import ZDCClientAPI
internal import ZDCCrypto
internal import ZDCProtocol

/// Fetches the content of a node, whole or in ranges. Results are verified against the record's root.
struct ContentFetch: Sendable {
  package typealias Progress = @Sendable (_ received: UInt64) -> Void

  package let api: ServerAPI
  package let target: ContentTarget
  package var policy: TransferRetry.Choice = { .brief }

  package var layout: ContentLayout { target.reference.layout }

  /// Passes the ciphertext from `position` to the end to `take`.
  ///
  /// Resumes a broken connection where it stopped, as long as each one delivers something. A connection that delivers
  /// nothing is retried a few times.
  ///
  /// - Parameters:
  ///   - first: the answer to an earlier request for the whole content.
  ///   - prepare: called before each request; it may take bytes from elsewhere.
  package func receive(
    from position: () -> UInt64, first: Result<Answer, any Error>? = nil, prepare: () async throws -> Void = {},
    _ take: ([UInt8]) throws -> Void
  ) async throws {
    var patience = TransferRetry(policy())
    var first = first
    while true {
      try await prepare()
      let start = position()
      guard start < layout.cipherLength else { return }
      do {
        try await receive(start..<layout.cipherLength, first.take()?.get(), take)
        // The announced length was sufficient, so an answer that ends early without an error is truncated.
        try require(position() == layout.cipherLength, .contentTruncated)
      } catch is TransferHandOver.HandedOver {
        continue
      } catch {
        try await patience.tryAgain(after: located(error), hasProgressed: position() > start)
      }
    }
  }

  package typealias Answer = (length: UInt64, body: TransportBody)

  /// Requests the whole content.
  func wholeAnswer() async -> Result<Answer, any Error> {
    do { return .success(try await answer(nil)) } catch { return .failure(error) }
  }

  /// - Parameter range: nil for the whole content.
  private func answer(_ range: Range<UInt64>?) async throws -> Answer {
    try await api.content(target.zone, node: target.node, blob: target.blob, range: range)
  }

  private func receive(
    _ range: Range<UInt64>, _ asked: Answer?, _ take: ([UInt8]) throws -> Void
  ) async throws {
    let expected = range.upperBound - range.lowerBound
    let isWhole = expected == layout.cipherLength
    let (length, body) = if let asked { asked } else { try await answer(isWhole ? nil : range) }
    try require(length >= expected, .contentTruncated)
    try require(length <= expected, .contentTrailingData)
    var left = expected
    var batch = await SliceBatch.next(of: body, expected: left)
    while true {
      // Stops an endless body at the first excess slice.
      try require(UInt64(batch.count) <= left, .contentTrailingData)
      left -= UInt64(batch.count)
      // The next batch arrives while this one is opened and written.
      let (isLast, rest) = (batch.end != nil, left)
      async let next = isLast ? SliceBatch() : SliceBatch.next(of: body, expected: rest)
      for slice in batch.slices { try take(slice) }
      if let end = batch.end { return try end.get() }
      batch = await next
    }
  }

  // MARK: Hashes

  private static let hashesPerRequest: UInt64 = 131_072

  /// Returns the verified hashes of all leaves. Content with a single leaf needs no request.
  package func leaves() async throws -> ContentLeaves {
    let count = layout.leafCount
    guard count > 1 else { return try ContentLeaves(for: target.reference) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(count) * 32)
    while UInt64(bytes.count) < count * 32 {
      let from = UInt64(bytes.count / 32)
      let wanted = Int(min(count - from, Self.hashesPerRequest))
      let part = try await TransferRetry.run(policy()) {
        do {
          return try await api.leafHashes(
            target.zone, node: target.node, blob: target.blob, from: from, count: wanted)
        } catch { throw located(error) }
      }
      try require(!part.isEmpty && part.count.isMultiple(of: 32), .contentHashMismatch, node: target.node)
      bytes += part
    }
    do {
      return try ContentLeaves(bytes: bytes, for: target.reference)
    } catch { throw located(error) }
  }

  // MARK: Ranges

  /// Fetches and opens sections without the rest of the content: only their leaves, the first leaf, and one proof.
  package func sections(
    _ wanted: [ContentSection], report: TransferReport = { _, _ in }
  ) async throws -> [ContentSection: [UInt8]] {
    var reader = ContentReader(target.reference)
    let plan = reader.plan(wanted)
    let opened = try await read(plan, &reader, report: report)
    var sections: [ContentSection: [UInt8]] = [:]
    for section in wanted { sections[section] = Array(reader.section(section, in: opened, of: plan)) }
    return sections
  }

  /// Fetches, verifies and opens the ranges of a plan.
  package func read(
    _ plan: ContentRangePlan, _ reader: inout ContentReader, report: TransferReport = { _, _ in }
  ) async throws -> [UInt8] {
    var fetched: [[UInt8]] = []
    let total = plan.fetches.reduce(0) { $0 + UInt64($1.count) }
    var before: UInt64 = 0
    for range in plan.fetches {
      fetched.append(try await bytes(range) { [before] in report(before + $0, total) })
      before += UInt64(range.count)
    }
    let proof = plan.needsProof(layout) ? try await proof(plan.leaves) : []
    do {
      return try reader.read(plan, fetched: fetched, proof: proof)
    } catch { throw located(error) }
  }

  /// Returns a range of the ciphertext in its full length, not yet verified.
  package func bytes(_ range: Range<UInt64>, progress: (UInt64) -> Void = { _ in }) async throws -> [UInt8] {
    var patience = TransferRetry(policy())
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.count)
    while bytes.count < range.count {
      let start = bytes.count
      do {
        try await receive(range.lowerBound + UInt64(start)..<range.upperBound, nil) {
          bytes += $0
          progress(UInt64(bytes.count))
        }
        try require(bytes.count == range.count, .contentTruncated)
      } catch {
        try await patience.tryAgain(after: located(error), hasProgressed: bytes.count > start)
      }
    }
    return bytes
  }

  private func proof(_ leaves: Range<UInt64>) async throws -> [UInt8] {
    try await TransferRetry.run(policy()) {
      do {
        return try await api.leafProof(target.zone, node: target.node, blob: target.blob, leaves: leaves)
      } catch { throw located(error) }
    }
  }

  /// Adds zone and node to security errors. If the server claims that its content ends earlier, the content is
  /// truncated.
  func located(_ error: any Error) -> any Error {
    if let error = error as? ServerError, error.code == .rangeNotSatisfiable {
      return ZDCSecurityError(.contentTruncated, zone: target.zone, node: target.node)
    }
    return (error as? ZDCSecurityError)?.with(zone: target.zone, node: target.node) ?? error
  }
}
