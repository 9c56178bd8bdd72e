public import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

/// The opened content of a node.
///
/// ```swift
/// func receive(_ content: ZDCNodeContent, of node: ZDCNode) { store(content, of: node, transaction) }
/// ```
public enum ZDCNodeContent: Sendable {
  /// Small content, already opened.
  case memory(data: Data, metadata: Data, thumbnail: Data)
  /// Larger content, as a file that belongs to the caller.
  case file(ZDCCryptoFile)
}

/// One result of ``ZDCDownloadManager/downloadContents(of:)``.
public struct ZDCContentDownload: Sendable {
  /// The node, as it was when the download was requested.
  public let node: ZDCNode
  /// The content of this node, or the reason why it could not be fetched. Other nodes are not affected.
  public let content: Result<ZDCNodeContent, any Error>
}

extension ZDCDownloadManager {
  /// Downloads the content of many nodes: small content in batches of up to a thousand nodes, large content in files.
  /// Up to four requests are in progress while the caller reads results.
  ///
  /// Small content comes first, otherwise in the given order. When the caller stops reading, the rest is not fetched.
  /// The stream throws only errors that concern all nodes: the database, an unreachable server, a refused session.
  ///
  /// ```swift
  /// for try await download in session.downloadManager.downloadContents(of: nodes) {
  ///   switch download.content {
  ///   case .success(.memory(let data, _, _)): try store(data, of: download.node)
  ///   case .success(.file(let file)): importDocument(file, of: download.node)
  ///   case .failure(let error): report(error)  // of this node only
  ///   }
  /// }
  /// ```
  public func downloadContents(of nodes: [ZDCNode]) -> AsyncThrowingStream<ZDCContentDownload, any Error> {
    let bulk = BulkDownload(manager: self, nodes: nodes)
    return AsyncThrowingStream { try await bulk.next(atMost: 1).first }
  }
}

/// Processes a list of nodes a few batches ahead of its reader. Looks up the targets of a thousand nodes at a time, so
/// that its memory does not grow with the list.
actor BulkDownload {
  /// Maximum number of batches in progress, to hide the latency of a round trip.
  private static let mostAhead = 4
  /// Bytes of small content in memory, at which no further batch is started.
  private static let mostBytesAhead = Limits.pageBytes

  private typealias Batch = [(node: ZDCNode, target: ContentTarget)]

  private let manager: ZDCDownloadManager
  private let nodes: [ZDCNode]
  /// Number of nodes that were looked up.
  private var position = 0
  /// Indices of those with large content, which come last.
  private var large: ArraySlice<Int> = []
  private var batches: ArraySlice<Batch> = []
  private var failed: [ZDCContentDownload] = []
  private var results: ArraySlice<ZDCContentDownload> = []
  private var ahead: [Fetch] = []

  private struct Fetch {
    var task: Task<[ZDCContentDownload], any Error>
    /// Bytes in memory once the task has ended.
    var bytes: Int
  }

  package init(manager: ZDCDownloadManager, nodes: [ZDCNode]) {
    self.manager = manager
    self.nodes = nodes
  }

  /// Discards results that were not read.
  deinit {
    let (unread, ahead) = (results, ahead)
    guard !ahead.isEmpty || !unread.isEmpty else { return }
    let tasks = ahead.map(\.task)
    for task in tasks { task.cancel() }
    Task {
      for download in unread { download.discard() }
      for task in tasks {
        if case .success(let more) = await task.result { for download in more { download.discard() } }
      }
    }
  }

  /// Returns results that have arrived together, or none at the end of the list.
  package func next(atMost limit: Int) async throws -> [ZDCContentDownload] {
    while results.isEmpty {
      try await fill()
      guard let task = ahead.first?.task else {
        guard !failed.isEmpty else { return [] }
        takeFailed()
        continue
      }
      let done = try await withTaskCancellationHandler {
        try await task.value
      } onCancel: {
        task.cancel()
      }
      ahead.removeFirst()
      takeFailed()
      results += done
      try await fill()
    }
    defer { results = results.dropFirst(limit) }
    return Array(results.prefix(limit))
  }

  private func takeFailed() {
    results = failed[...]
    failed = []
  }

  private func fill() async throws {
    while ahead.count < Self.mostAhead, ahead.reduce(0, { $0 + $1.bytes }) < Self.mostBytesAhead {
      while batches.isEmpty, position < nodes.count || !large.isEmpty { try await lookUp() }
      guard let batch = batches.popFirst() else { return }
      let bytes = batch.reduce(0) { $0 + ($1.target.isSmall ? Int($1.target.cipherLength) : 0) }
      ahead.append(Fetch(task: Task { [manager] in try await manager.fetch(batch) }, bytes: bytes))
    }
  }

  /// Looks up the next nodes of the list or, at its end, the next large content.
  private func lookUp() async throws {
    let isLate = position == nodes.count
    let end = min(position + Limits.blobsPerRequest, nodes.count)
    let indices = isLate ? [large.removeFirst()] : Array(position..<end)
    position = end
    var small: [ZoneID: Batch] = [:]
    for (index, target) in zip(indices, try await targets(indices.map { nodes[$0] })) {
      switch target {
      case .failure(let error): failed.append(ZDCContentDownload(node: nodes[index], content: .failure(error)))
      case .success(let target) where target.isSmall:
        small[target.zone, default: []].append((nodes[index], target))
      case .success(let target) where isLate: batches.append([(nodes[index], target)])
      case .success: large.append(index)
      }
    }
    for (_, zone) in small.sorted(by: { $0.key < $1.key }) { batches += Self.split(zone) }
  }

  private func targets(_ nodes: [ZDCNode]) async throws -> [Result<ContentTarget, any Error>] {
    let found = try await storedTargets(nodes.map(\.uuid))
    guard zip(nodes, found).contains(where: { !Self.isSeen($0, $1) }) else { return found }
    // A transaction that has not committed yet may have shown them to the caller.
    await manager.writerBarrier.pass(manager.database)
    return try await storedTargets(nodes.map(\.uuid))
  }

  private static func isSeen(_ node: ZDCNode, _ target: Result<ContentTarget, any Error>) -> Bool {
    switch target {
    case .success(let target): target.shows(node.eTag_data)
    case .failure(let error): node.eTag_data == nil && (error as? ZDCError)?.code != .nodeNotFound
    }
  }

  private func storedTargets(_ uuids: [String]) async throws -> [Result<ContentTarget, any Error>] {
    try await manager.database.asyncRead { transaction in
      try uuids.map { uuid in
        do {
          return .success(try transaction.contentTarget(nodeUUID: uuid))
        } catch let error as ZDCError where error.code != .corruptDatabase { return .failure(error) }
      }
    }
  }

  private static func split(_ all: Batch) -> [Batch] {
    var rest = all[...]
    var batches: [Batch] = []
    while !rest.isEmpty {
      let count = SmallContentBatcher.batchSize(rest.lazy.map { Int($0.target.cipherLength) })
      batches.append(Array(rest.prefix(count)))
      rest = rest.dropFirst(count)
    }
    return batches
  }
}

extension ZDCDownloadManager {
  fileprivate func fetch(_ batch: [(node: ZDCNode, target: ContentTarget)]) async throws -> [ZDCContentDownload] {
    guard let first = batch.first?.target else { return [] }
    let api = try await users.serverAPI(for: first.user)
    let found = first.isSmall ? try await smallContents(batch.map(\.target), first, api) : [:]
    var results: [ZDCContentDownload] = []
    results.reserveCapacity(batch.count)
    for (node, target) in batch {
      let content = try await content(of: node, target, found[target.blob])
      results.append(ZDCContentDownload(node: node, content: content))
    }
    return results
  }

  /// Fetches all of them in one request. Returns nothing if the whole answer does not verify, or is `notFound` or
  /// `gone`. The caller then fetches each one separately, so that each gets its content or its own error.
  private func smallContents(
    _ targets: [ContentTarget], _ first: ContentTarget, _ api: ServerAPI
  ) async throws -> [BlobID: [UInt8]] {
    do {
      return try await recordingSecurityErrors(ofZoneOf: first) {
        try SmallContentBatcher.contents(
          in: try await api.contents(first.zone, targets.map { ($0.node, $0.blob) }))
      }
    } catch is ZDCSecurityError {
      return [:]
    } catch let error as ServerError where error.code == .notFound || error.code == .gone {
      return [:]
    }
  }

  private func content(
    of node: ZDCNode, _ target: ContentTarget, _ bytes: [UInt8]?
  ) async throws -> Result<ZDCNodeContent, any Error> {
    do {
      if let bytes {
        return .success(
          try await recordingSecurityErrors(of: target) {
            .memory(try ContentOpener.openSmall(bytes, target.reference))
          })
      }
      let key = DownloadKey(nodeID: node.uuid, part: .data)
      // The reader continues: failures must surface early, and small content is not batched again.
      return .success(
        .file(
          try await fetchData(
            key, .init(), TransferInterest(usesLongRetries: false) { _, _ in }, seen: node.eTag_data
          ).cryptoFile))
    } catch let error as TransportError {
      throw error
    } catch let error as CancellationError {
      throw error
    } catch { return .failure(error) }
  }
}

extension ZDCContentDownload {
  fileprivate func discard() {
    if case .success(.file(let file)) = content { file.removeUnlessKept() }
  }
}

extension ZDCNodeContent {
  fileprivate static func memory(_ opened: OpenedContent) -> ZDCNodeContent {
    .memory(data: Data(opened.data), metadata: Data(opened.metadata), thumbnail: Data(opened.thumbnail))
  }
}
