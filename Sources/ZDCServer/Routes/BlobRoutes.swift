internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import ZDCProtocol

/// Large content: uploads in parts, downloads in ranges, with bounded memory in both directions.
enum BlobRoutes {
  static func ticket(_ call: Call) async throws -> Response {
    let user = try call.user
    let request = try await call.json(BlobTicketRequest.self)
    let limit = call.core.configuration.bounds.contentBytes
    let now = call.now
    let quotas = call.core.quotas
    let ticket = try await call.write([.upload(request.blobID)]) { tx in
      try Blobs.ticket(request, user: user, limit: limit, quotas: quotas, now: now, in: tx)
    }
    if ticket.isNew { try await call.core.blobs.begin(request.blobID, cipherLength: request.cipherLength) }
    await call.core.removeFiles(of: ticket.released)
    return try .json(ticket.status, status: .created)
  }

  static func parts(_ call: Call) async throws -> Response {
    let user = try call.user
    let blob: BlobID = try call.id("blobID")
    return try .json(
      try await call.read { reader in
        try Blobs.status(of: try Blobs.own(blob, user: user, in: reader), in: reader)
      })
  }

  static func putPart(_ call: Call) async throws -> Response {
    let user = try call.user
    let blob: BlobID = try call.id("blobID")
    guard let index = Int(call.parameter("index")) else {
      throw ServerError(.notFound, "not a part")
    }
    guard let hash = ZBase32.decode(call.request.headers[.partHash] ?? "", byteCount: 32) else {
      throw ServerError(.invalidRequest, "the header \(WireHeaders.partHash) is missing")
    }
    let coordination = call.core.coordination
    guard await coordination.claim(part: index, of: blob) else {
      throw ServerError(.conflict, "the part is being received", retryable: true, retryAfterMs: 1_000)
    }
    var hasBegun = false
    do {
      try await take(call, blob: blob, index: index, hash: hash, from: user, &hasBegun)
      await coordination.release(part: index, of: blob)
    } catch {
      await coordination.release(part: index, of: blob)
      // The upload may have been aborted in the meantime; then the last request that writes to it removes its files.
      if hasBegun { await call.core.removeFiles(of: [blob], areUploads: true) }
      throw error
    }
    return .noContent
  }

  /// - Parameter hasBegun: set once the store may have bytes of the part. Until then, the upload may be another user's, or
  ///   none.
  private static func take(
    _ call: Call, blob: BlobID, index: Int, hash: [UInt8], from user: UserID, _ hasBegun: inout Bool
  ) async throws {
    let decision = try await call.read { try Blobs.offer(index, hash: hash, of: blob, user: user, in: $0) }
    guard case .take(let length, let range) = decision else { return }
    hasBegun = true
    try await receive(call, blob: blob, index: index, cipherLength: length, count: range.count, hash: hash)
    let now = call.now
    try await call.write([.upload(blob)]) {
      try Blobs.record(index, hash: hash, of: blob, user: user, now: now, in: $0)
    }
  }

  /// Streams a part into the store; holds at most four leaves in memory, or the whole part if the store does.
  private static func receive(
    _ call: Call, blob: BlobID, index: Int, cipherLength: UInt64, count: Int, hash: [UInt8]
  ) async throws {
    let wrongLength = ServerError(.invalidRequest, "the part has \(count) bytes")
    if let stated = call.request.headers[.contentLength].flatMap(Int.init), stated != count { throw wrongLength }
    if call.core.blobs.buffersParts { try call.share.take(count) }
    let writer = try await call.core.blobs.openPart(blob, index: index, cipherLength: cipherLength)
    do {
      var pending: [UInt8] = []
      pending.reserveCapacity(slice + 64 << 10)
      var received = 0
      for try await buffer in call.request.body {
        received += buffer.readableBytes
        guard received <= count else { throw wrongLength }
        buffer.withUnsafeReadableBytes { pending.append(contentsOf: $0) }
        guard pending.count >= slice else { continue }
        try await writer.write(pending)
        pending.removeAll(keepingCapacity: true)
      }
      guard received == count else { throw wrongLength }
      if !pending.isEmpty { try await writer.write(pending) }
      guard try await writer.finish() == hash else {
        throw ServerError(.refused, "the part does not match its hash", security: .contentHashMismatch)
      }
      call.core.metrics.countBytes(in: received)
    } catch {
      await writer.abandon()
      throw error
    }
  }

  private static let slice = 3 * ContentGeometry.leafBytes

  static func complete(_ call: Call) async throws -> Response {
    let user = try call.user
    let blob: BlobID = try call.id("blobID")
    let row = try await call.read { try Blobs.ready(blob, user: user, in: $0) }
    if row.state == .complete {
      return try .json(try await call.read { try Blobs.status(of: row, in: $0) })
    }
    let root = try await contentRoot(row, call, user)
    let now = call.now
    let status = try await call.write([.upload(blob)]) {
      try Blobs.complete(blob, root: root, user: user, now: now, in: $0)
    }
    return try .json(status)
  }

  private static func contentRoot(_ row: BlobRow, _ call: Call, _ user: UserID) async throws -> ContentRoot {
    do {
      return try await call.core.blobs.contentRoot(row.id, cipherLength: row.cipherLength)
    } catch {
      // If the upload was aborted in the meantime, the store is not at fault.
      _ = try await call.read { try Blobs.ready(row.id, user: user, in: $0) }
      guard error is BlobLost else { throw error }
      call.logger.error("parts of an upload are lost")
      throw ServerError(.blobGone, "the server has lost parts of this upload")
    }
  }

  static func abort(_ call: Call) async throws -> Response {
    let user = try call.user
    let blob: BlobID = try call.id("blobID")
    try await call.write([.upload(blob)]) { try Blobs.abort(blob, user: user, in: $0) }
    await call.core.removeFiles(of: [blob], areUploads: true)
    return .noContent
  }

  static func leafHashes(_ call: Call) async throws -> Response {
    let row = try await blob(of: call)
    let leaves = ContentGeometry.leafCount(cipherLength: row.cipherLength)
    let first = try call.number("from") ?? 0
    let count = min(try call.number("count") ?? leaves, 131_072)
    guard first < leaves else { throw ServerError(.rangeNotSatisfiable, "the content has \(leaves) leaves") }
    let wanted = Int(min(count, leaves - first))
    if row.isInline {
      let bytes = try await call.read { try $0.inlineBytes(of: row) } ?? []
      return try .octets(MerkleTree.leafHash(bytes).bytes, for: call)
    }
    return try .octets(
      try await stored(call) { try await $0.leafHashes(row.id, first: first, count: wanted) }, for: call)
  }

  static func leafProof(_ call: Call) async throws -> Response {
    let row = try await blob(of: call)
    let leaves = ContentGeometry.leafCount(cipherLength: row.cipherLength)
    let first = try call.number("from") ?? 0
    guard first < leaves else { throw ServerError(.rangeNotSatisfiable, "the content has \(leaves) leaves") }
    let proven = ContentGeometry.provenLeaves(
      from: first, count: try call.number("count") ?? 1, cipherLength: row.cipherLength)
    // A blob of one leaf has no other subtrees, and inline content has no file.
    guard !row.isInline else { return try .octets([], for: call) }
    let subtrees = MerkleTree.proofSubtrees(leafCount: leaves, leaves: proven)
    return try .octets(
      try await stored(call) { try await $0.proof(row.id, of: subtrees, leafCount: leaves) }, for: call)
  }

  /// Reads the data of a blob that a record names. The response for lost content is final.
  private static func stored<T: Sendable>(
    _ call: Call, _ read: (any BlobStore) async throws -> T
  ) async throws -> T {
    do { return try await read(call.core.blobs) } catch is BlobLost {
      call.logger.error("stored content is damaged: stop the server and run zdc-server check")
      throw ServerError(.blobGone, "the server has lost this content")
    }
  }

  static func content(_ call: Call) async throws -> Response {
    let row = try await blob(of: call)
    let length = row.cipherLength
    let range = try ByteRange.parse(call.request.headers[.range], length: length)
    var headers: HTTPFields = [
      .contentType: "application/octet-stream", .acceptRanges: "bytes", .eTag: "\"\(row.id.text)\"",
      .cacheControl: "no-store",
    ]
    if let range { headers[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)" }
    let body = try await body(call, row, range: range ?? 0..<length)
    return Response(status: range == nil ? .ok : .partialContent, headers: headers, body: body)
  }

  private static func blob(of call: Call) async throws -> BlobRow {
    let user = try call.user
    let tree: TreeID = try call.id("treeID")
    let node: NodeID = try call.id("nodeID")
    let blob: BlobID = try call.id("blobID")
    return try await call.read { try Access.content(blob, node: node, tree: tree, user: user, in: $0) }
  }

  private static func body(_ call: Call, _ row: BlobRow, range: Range<UInt64>) async throws -> ResponseBody {
    if row.isInline {
      guard let bytes = try await call.read({ try $0.inlineBytes(of: row) }) else {
        throw ServerError(.blobGone, "the content is no longer kept")
      }
      return ResponseBody(byteBuffer: ByteBuffer(bytes: bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
    }
    // Once the response head is sent, an error can only close the connection.
    let reader = try await stored(call) { try await $0.open(row.id, range: range) }
    let channel = call.context.channel
    return ResponseBody(contentLength: Int(range.count)) { writer in
      var remaining = range.count
      while let bytes = try await reader.next() {
        try await writer.write(ByteBuffer(bytes: bytes))
        remaining -= bytes.count
        // NB: over TLS, the writer applies no backpressure on its own; without this, a slow reader fills the memory.
        if remaining > 0 { try await channel.untilWritable() }
      }
      try await writer.finish(nil)
    }
  }
}

/// A single range: `bytes=a-b`, `bytes=a-` or `bytes=-n`. Multiple ranges are not supported.
enum ByteRange {
  /// Returns nil for the whole content.
  static func parse(_ header: String?, length: UInt64) throws -> Range<UInt64>? {
    guard let header, header.hasPrefix("bytes="), !header.contains(",") else { return nil }
    let parts = header.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    let unsatisfiable = ServerError(.rangeNotSatisfiable, "the content has \(length) bytes")
    if parts[0].isEmpty {
      guard let count = UInt64(parts[1]), count > 0 else { throw unsatisfiable }
      return length - min(count, length)..<length
    }
    guard let start = UInt64(parts[0]), start < length else { throw unsatisfiable }
    if parts[1].isEmpty { return start..<length }
    guard let last = UInt64(parts[1]), last >= start else { throw unsatisfiable }
    return start..<min(last, length - 1) + 1
  }
}
