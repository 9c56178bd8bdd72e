internal import Foundation
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

extension ZDCDownloadManager {
  /// Downloads the content of all nodes whose data is marked as needed, and of those marked later, until the reader
  /// stops.
  ///
  /// While the server is unreachable the stream waits, and then resumes automatically. Store the content of a node and
  /// remove its mark in one transaction. A node that is still marked is delivered again at the next launch, or when it
  /// has a newer version. One whose mark was removed and that is marked again is delivered again at once. Failed downloads are retried when the server is reachable again, and after each pull.
  ///
  /// ```swift
  /// for try await download in manager.downloadMarkedContents(forLocalUserID: user.uuid) {
  ///   guard case .success(let content) = download.content else { continue }
  ///   try await tree.write { transaction, cloud in
  ///     store(content, of: download.node, transaction)
  ///     let node = download.node
  ///     cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .all, ifETagMatches: node.eTag_data)
  ///   }
  /// }
  /// ```
  ///
  /// Marks of metadata and thumbnails alone start no download here: `downloadNodeMeta` and the image manager serve
  /// them.
  ///
  /// Nodes that are not in the cloud yet, or have no content, are left out. The stream throws errors that concern all
  /// nodes, except those of the network: the database, a refused session.
  public func downloadMarkedContents(
    forLocalUserID localUserID: String, treeID: String? = nil
  ) -> AsyncThrowingStream<ZDCContentDownload, any Error> {
    let downloads = MarkedDownloads(manager: self, localUserID: localUserID, treeID: treeID ?? primaryTreeID)
    return AsyncThrowingStream { try await downloads.next(atMost: 1)?.first }
  }

  /// Downloads the same content as ``downloadMarkedContents(forLocalUserID:treeID:)``, and returns what has arrived
  /// together: the small content of up to a thousand nodes, or one file.
  ///
  /// A change of another device often concerns several nodes, and a new device receives thousands. Store those of a batch
  /// in one transaction, which takes little longer than a transaction for one of them.
  ///
  /// ```swift
  /// for try await downloads in manager.downloadMarkedBatches(forLocalUserID: user.uuid) {
  ///   try await tree.write { transaction, cloud in
  ///     for download in downloads {
  ///       guard case .success(let content) = download.content else { continue }
  ///       store(content, of: download.node, transaction)
  ///       let node = download.node
  ///       cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .all, ifETagMatches: node.eTag_data)
  ///     }
  ///   }
  /// }
  /// ```
  ///
  /// A batch has at least one download. Content that could not be fetched is in it too, with its error.
  public func downloadMarkedBatches(
    forLocalUserID localUserID: String, treeID: String? = nil
  ) -> AsyncThrowingStream<[ZDCContentDownload], any Error> {
    let downloads = MarkedDownloads(manager: self, localUserID: localUserID, treeID: treeID ?? primaryTreeID)
    return AsyncThrowingStream { try await downloads.next(atMost: Limits.blobsPerRequest) }
  }
}

/// Downloads the marked nodes of one tree in repeated rounds.
private actor MarkedDownloads {
  private let manager: ZDCDownloadManager
  private let localUserID: String
  private let treeID: String
  /// The marked nodes that were delivered to the reader, by id.
  private var given: [String: Marked] = [:]
  /// The marked nodes whose download failed, and the occasion of the attempt.
  private var failed: [String: (node: Marked, occasion: Int)] = [:]
  /// The nodes of the round.
  private var wanted: [String: Marked] = [:]
  /// The occasion at which the round began.
  private var occasion = 0
  private var round: BulkDownload?
  /// Opened before the marks are read, so that no hint is missed.
  private var hints: AsyncStream<Void>?
  private var backoff = Backoff()

  /// A version of a node, and the mark that asks for it.
  private struct Marked: Equatable {
    let eTag: String?
    let request: Int64

    init(_ node: ZDCNode, _ request: Int64) { (eTag, self.request) = (node.eTag_data, request) }
  }

  init(manager: ZDCDownloadManager, localUserID: String, treeID: String) {
    self.manager = manager
    self.localUserID = localUserID
    self.treeID = treeID
  }

  /// - Returns: At least one download, or nil once the reader's task is cancelled.
  func next(atMost limit: Int) async throws -> [ZDCContentDownload]? {
    while !Task.isCancelled {
      do {
        let downloads = try await nextOfRound(limit)
        if !downloads.isEmpty { return downloads }
        if try await !beginRound() { await wait(pauseMs: nil) }
      } catch let error as TransportError {
        try await pause(after: error, atLeastMs: 0)
      } catch let error as ServerError where error.retryable {
        // The server is starting or overloaded.
        try await pause(after: error, atLeastMs: error.retryAfterMs ?? 0)
      }
    }
    return nil
  }

  private func pause(after error: any Error, atLeastMs: UInt64) async throws {
    guard !Task.isCancelled else { throw error }
    round = nil
    await wait(pauseMs: backoff.next(random: .random(in: 0.5..<1), atLeast: atLeastMs))
  }

  private func nextOfRound(_ limit: Int) async throws -> [ZDCContentDownload] {
    guard let downloads = try await round?.next(atMost: limit), !downloads.isEmpty else {
      round = nil
      return []
    }
    backoff.reset()
    downloads.forEach(note)
    return downloads
  }

  private func note(_ download: ZDCContentDownload) {
    let uuid = download.node.uuid
    guard let node = wanted[uuid] else { return }
    if case .failure(let error) = download.content, !ZDCDownloadManager.isPermanent(error) {
      failed[uuid] = (node, occasion)
    } else {
      given[uuid] = node
      failed[uuid] = nil
    }
  }

  private func beginRound() async throws -> Bool {
    let changes = manager.database.context.changes
    hints = changes.hints(.downloads, .network, .pull)
    occasion = changes.occasion
    let nodes = try await markedNodes()
    let marked = Dictionary(uniqueKeysWithValues: nodes.map { ($0.node.uuid, Marked($0.node, $0.request)) })
    given = given.filter { marked[$0.key] == $0.value }
    failed = failed.filter { marked[$0.key] == $0.value.node }
    wanted = marked.filter { uuid, node in
      node.eTag != nil && given[uuid] == nil && failed[uuid]?.occasion != occasion
    }
    guard !wanted.isEmpty else { return false }
    round = BulkDownload(manager: manager, nodes: nodes.map(\.node).filter { wanted[$0.uuid] != nil })
    return true
  }

  private func markedNodes() async throws -> [(node: ZDCNode, request: Int64)] {
    let (user, tree) = (localUserID, treeID)
    return try await manager.database.asyncRead { transaction in
      guard let cloud = transaction.cloud(forLocalUserID: user, treeID: tree) else {
        throw ZDCError(.localUserNotFound)
      }
      return try cloud.nodesWithRequestedData()
    }
  }

  /// Waits for a hint, or until the pause is over.
  private func wait(pauseMs: UInt64?) async {
    let hints = self.hints ?? manager.database.context.changes.hints(.downloads, .network, .pull)
    await withTaskGroup(of: Void.self) { group in
      group.addTask { for await _ in hints { return } }
      if let pauseMs {
        group.addTask { do { try await Task.sleep(for: .milliseconds(Int64(pauseMs))) } catch {} }
      }
      await group.next()
      group.cancelAll()
    }
    self.hints = nil
  }
}
