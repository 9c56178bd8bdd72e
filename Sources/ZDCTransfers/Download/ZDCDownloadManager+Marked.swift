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
  /// has a newer version. Failed downloads are retried when the server is reachable again, and after each pull.
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
    return AsyncThrowingStream { try await downloads.next() }
  }
}

/// Downloads the marked nodes of one tree in repeated rounds.
private actor MarkedDownloads {
  private let manager: ZDCDownloadManager
  private let localUserID: String
  private let treeID: String
  /// The version of each node that was delivered to the reader.
  private var given: [String: String] = [:]
  /// The version of each node whose download failed, and the occasion of the attempt.
  private var failed: [String: (eTag: String?, occasion: Int)] = [:]
  /// The occasion at which the round began.
  private var occasion = 0
  private var round: BulkDownload?
  /// Opened before the marks are read, so that no hint is missed.
  private var hints: AsyncStream<Void>?
  private var backoff = Backoff()

  init(manager: ZDCDownloadManager, localUserID: String, treeID: String) {
    self.manager = manager
    self.localUserID = localUserID
    self.treeID = treeID
  }

  func next() async throws -> ZDCContentDownload? {
    while !Task.isCancelled {
      do {
        if let download = try await nextOfRound() { return download }
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

  private func nextOfRound() async throws -> ZDCContentDownload? {
    guard let download = try await round?.next() else {
      round = nil
      return nil
    }
    backoff.reset()
    let (uuid, eTag) = (download.node.uuid, download.node.eTag_data)
    if case .failure(let error) = download.content, !ZDCDownloadManager.isPermanent(error) {
      failed[uuid] = (eTag, occasion)
    } else {
      given[uuid] = eTag
      failed[uuid] = nil
    }
    return download
  }

  private func beginRound() async throws -> Bool {
    let changes = manager.database.context.changes
    hints = changes.hints(.downloads, .network, .pull)
    occasion = changes.occasion
    let (user, tree) = (localUserID, treeID)
    let marked = try await manager.database.asyncRead { transaction -> [ZDCNode] in
      guard let cloud = transaction.cloud(forLocalUserID: user, treeID: tree) else {
        throw ZDCError(.localUserNotFound)
      }
      return cloud.nodeIDsMarkedAsNeedsDownload(components: .data).compactMap { cloud.node(id: $0) }
    }
    let wanted = marked.filter { node in
      guard node.eTag_data != nil, given[node.uuid] != node.eTag_data else { return false }
      return failed[node.uuid].map { $0 != (node.eTag_data, occasion) } ?? true
    }
    guard !wanted.isEmpty else { return false }
    round = BulkDownload(manager: manager, nodes: wanted)
    return true
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
