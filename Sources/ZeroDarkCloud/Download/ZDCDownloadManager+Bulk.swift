public import Foundation
internal import ZDCCrypto
internal import ZDCProtocol
public import ZDCTreesystem

/// A node's opened content.
public enum ZDCNodeContent: Sendable {
  /// Small content comes opened.
  case memory(data: Data, metadata: Data, thumbnail: Data)
  /// Larger content comes as a file that belongs to the caller.
  case file(ZDCCryptoFile)
}

/// One result of ``ZDCDownloadManager/downloadContents(of:)``.
public struct ZDCContentDownload: Sendable {
  public let node: ZDCNode
  /// The content of this node, or why it could not be had; the others go on.
  public let content: Result<ZDCNodeContent, any Error>
}

extension ZDCDownloadManager {
  /// Downloads the contents of many nodes: small ones in batches of up to a thousand, the next batch under way while
  /// one
  /// is being read, large ones one after the other.
  ///
  /// Order: small contents first, otherwise as given. Stop reading, and the rest is not fetched. The stream throws only
  /// for
  /// what concerns all: the database, an unreachable server, a refused session.
  public func downloadContents(of nodes: [ZDCNode]) -> AsyncThrowingStream<ZDCContentDownload, any Error> {
    let bulk = BulkDownload(manager: self, nodes: nodes)
    return AsyncThrowingStream { try await bulk.next() }
  }
}

/// Works off a list of nodes one batch ahead of its reader.
private actor BulkDownload {
  private typealias Batch = [(node: ZDCNode, target: ContentTarget)]

  private let manager: ZDCDownloadManager
  private let nodes: [ZDCNode]
  private var isPlanned = false
  private var batches: ArraySlice<Batch> = []
  private var results: ArraySlice<ZDCContentDownload> = []
  private var ahead: Task<[ZDCContentDownload], any Error>?

  init(manager: ZDCDownloadManager, nodes: [ZDCNode]) {
    self.manager = manager
    self.nodes = nodes
  }

  deinit {
    ahead?.cancel()
  }

  func next() async throws -> ZDCContentDownload? {
    if !isPlanned { try await plan() }
    while results.isEmpty {
      guard let task = ahead ?? startNext() else { return nil }
      ahead = nil
      let done = try await withTaskCancellationHandler {
        try await task.value
      } onCancel: {
        task.cancel()
      }
      ahead = startNext()
      results = done[...]
    }
    return results.popFirst()
  }

  private func startNext() -> Task<[ZDCContentDownload], any Error>? {
    guard let batch = batches.popFirst() else { return nil }
    return Task { [manager] in try await manager.fetch(batch) }
  }

  private func plan() async throws {
    isPlanned = true
    let nodes = nodes
    let found = try await manager.database.asyncRead { transaction in
      try nodes.map { node -> (node: ZDCNode, target: Result<ContentTarget, any Error>) in
        do {
          return (node, .success(try transaction.contentTarget(nodeUUID: node.uuid)))
        } catch let error as ZDCError where error.code != .corruptDatabase { return (node, .failure(error)) }
      }
    }
    var small: [ZoneID: Batch] = [:]
    var large: [Batch] = []
    for (node, target) in found {
      switch target {
      case .failure(let error): results.append(ZDCContentDownload(node: node, content: .failure(error)))
      case .success(let target) where target.isSmall: small[target.zone, default: []].append((node, target))
      case .success(let target): large.append([(node, target)])
      }
    }
    for (_, zone) in small.sorted(by: { $0.key < $1.key }) { batches += Self.split(zone) }
    batches += large
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
    var found: [BlobID: [UInt8]] = [:]
    if first.isSmall {
      let items = batch.map { ($0.target.node, $0.target.blob) }
      found = try SmallContentBatcher.contents(in: try await api.contents(first.zone, items))
    }
    var results: [ZDCContentDownload] = []
    results.reserveCapacity(batch.count)
    for (node, target) in batch {
      let content = try await content(of: node, target, found[target.blob])
      results.append(ZDCContentDownload(node: node, content: content))
    }
    return results
  }

  private func content(
    of node: ZDCNode, _ target: ContentTarget, _ bytes: [UInt8]?
  ) async throws -> Result<ZDCNodeContent, any Error> {
    do {
      if let bytes { return .success(.memory(try ContentOpener.openSmall(bytes, target.reference))) }
      return .success(.file(try await downloadNodeData(node).cryptoFile))
    } catch let error as TransportError {
      throw error
    } catch let error as CancellationError {
      throw error
    } catch { return .failure(error) }
  }
}

extension ZDCNodeContent {
  fileprivate static func memory(_ opened: OpenedContent) -> ZDCNodeContent {
    .memory(data: Data(opened.data), metadata: Data(opened.metadata), thumbnail: Data(opened.thumbnail))
  }
}
