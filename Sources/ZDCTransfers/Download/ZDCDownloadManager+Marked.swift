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
  /// has a newer version. One whose mark was removed and that is marked again is delivered again at once. Failed downloads
  /// are retried when the server is reachable again, and after each pull. Content with which the connection breaks or
  /// stalls again and again fails, does not hold up the rest, and is retried after growing pauses.
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
  /// The nodes that ``round`` downloads, and those that follow. A broken connection halves a group.
  private var group: [ZDCNode] = []
  private var groups: [[ZDCNode]] = []
  /// Nodes whose download was alone when its connection broke, and how often. They come last in the next round.
  private var broken: [String: (node: Marked, times: Int)] = [:]
  /// The number of consecutive broken connections of single downloads.
  private var breaksInRow = 0
  /// At this number, the content of one node is at fault, and for ``breaksInRow`` rather the network.
  private static let mostBreaks = 3
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
        if broken.keys.contains(where: isWanted) { await waitForNextAttempt() }
        if try await !beginRound() { await wait(pauseMs: nil) }
      } catch let error as TransportError where Self.mayConcernOneNode(error) && breaksInRow < Self.mostBreaks {
        guard !Task.isCancelled else { throw error }
        if let failed = split(after: error) { return [failed] }
      } catch let error as TransportError {
        try await pause(after: error, atLeastMs: 0)
      } catch let error as ServerError where error.retryable {
        // The server is starting or overloaded.
        try await pause(after: error, atLeastMs: error.retryAfterMs ?? 0)
      }
    }
    return nil
  }

  /// Whether the content of one node may be at fault. The server cannot deliver it, or does not get to its end.
  private static func mayConcernOneNode(_ error: TransportError) -> Bool {
    [.cut, .timeout, .tooSlow].contains(error.code)
  }

  private func pause(after error: any Error, atLeastMs: UInt64) async throws {
    guard !Task.isCancelled else { throw error }
    (round, group, groups) = (nil, [], [])
    breaksInRow = 0
    await waitForNextAttempt(atLeastMs: atLeastMs)
  }

  private func waitForNextAttempt(atLeastMs: UInt64 = 0) async {
    await wait(pauseMs: backoff.next(random: .random(in: 0.5..<1), atLeast: atLeastMs))
  }

  private func nextOfRound(_ limit: Int) async throws -> [ZDCContentDownload] {
    while let round {
      let downloads = try await round.next(atMost: limit)
      if !downloads.isEmpty {
        backoff.reset()
        breaksInRow = 0
        downloads.forEach(note)
        return downloads
      }
      beginGroup()
    }
    return []
  }

  private func beginGroup() {
    group = groups.popLast() ?? []
    round = group.isEmpty ? nil : BulkDownload(manager: manager, nodes: group)
  }

  /// Halves the rest of the group after its connection broke. Content that the server cannot deliver cuts off the
  /// answer for all nodes of a request; it must not keep the others from the reader.
  ///
  /// - Returns: The failed download of a single node, once.
  private func split(after error: TransportError) -> ZDCContentDownload? {
    let nodes = group.filter { isWanted($0.uuid) }
    if nodes.count > 1 {
      groups.append(Array(nodes[(nodes.count / 2)...]))
      groups.append(Array(nodes[..<(nodes.count / 2)]))
    }
    beginGroup()
    guard nodes.count == 1, let node = nodes.first, let marked = wanted[node.uuid] else { return nil }
    breaksInRow += 1
    let times = (broken[node.uuid]?.times ?? 0) + 1
    broken[node.uuid] = (marked, times)
    return times == Self.mostBreaks ? ZDCContentDownload(node: node, content: .failure(error)) : nil
  }

  /// Whether the node was not delivered in this round.
  private func isWanted(_ uuid: String) -> Bool {
    wanted[uuid] != nil && given[uuid] == nil && failed[uuid]?.occasion != occasion
  }

  private func note(_ download: ZDCContentDownload) {
    let uuid = download.node.uuid
    guard let node = wanted[uuid] else { return }
    broken[uuid] = nil
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
    broken = broken.filter { marked[$0.key] == $0.value.node }
    wanted = marked.filter { $0.value.eTag != nil }
    let next = nodes.map(\.node).filter { isWanted($0.uuid) }
    groups = [next.filter { broken[$0.uuid] != nil }, next.filter { broken[$0.uuid] == nil }].filter { !$0.isEmpty }
    beginGroup()
    return round != nil
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
