public import Foundation
internal import Synchronization
internal import ZDCCrypto
internal import ZDCProtocol
public import ZDCTreesystem

/// Downloads nodes' contents when the app wants them (seeds 001, 002).
///
/// Any number of downloads may be asked for at once: requests for one node join one transfer, small contents travel
/// together. Memory stays bounded whatever the size. Nothing is handed out before all of it was verified against the
/// node's signed record.
public final class ZDCDownloadManager: Sendable {
  /// What a completion block gets.
  public typealias DataCompletion =
    @Sendable (_ cloudDataInfo: ZDCCloudDataInfo?, _ cryptoFile: ZDCCryptoFile?, _ error: (any Error)?) -> Void

  let database: ZDCDatabaseConnection
  let users: ZDCLocalUserManager
  let primaryTreeID: String
  /// Keeps results; nil where nothing does.
  let disk: ZDCDiskManager?
  let folder: DownloadFolder
  let partials: PartialFolder
  let transfers: TransferTable
  private let batchers = Mutex<[BatchKey: SmallContentBatcher]>([:])
  private let tags = Mutex<Set<TagKey>>([])

  private struct BatchKey: Hashable {
    var user: UserID
    var zone: ZoneID
  }

  private struct TagKey: Hashable {
    var node: String
    var tag: String
  }

  /// - Parameter partials: where large downloads that were cut off wait for their next try.
  init(
    database: ZDCDatabaseConnection, users: ZDCLocalUserManager, primaryTreeID: String, disk: ZDCDiskManager? = nil,
    folder: DownloadFolder = DownloadFolder(), partials: URL
  ) {
    self.database = database
    self.users = users
    self.primaryTreeID = primaryTreeID
    self.disk = disk
    self.folder = folder
    self.partials = PartialFolder(url: partials)
    transfers = TransferTable(folder: folder)
  }

  deinit {
    folder.removeIfEmpty()
  }

  /// Downloads the newest content of a node that this device knows of.
  ///
  /// - Returns: What the record says about it, and a file of ciphertext that belongs to the caller: open it with
  ///   ``ZDCFileConversion`` and delete it.
  /// - Throws: ``ZDCError`` with `nodeNotFound`, `nodeNotUploaded`, `noContent`, `diskFull` or `fileFailure`;
  ///   `ZDCSecurityError` with `contentHashMismatch`, `contentTruncated` or `contentTrailingData`; `ServerError` with
  ///   `blobGone` or `notFound` if it was replaced or deleted meanwhile; ``TransportError``; `CancellationError`.
  public func downloadNodeData(
    _ node: ZDCNode, options: ZDCDownloadOptions? = nil
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, cryptoFile: ZDCCryptoFile) {
    let (info, file) = try await download(nodeUUID: node.uuid) { _, _ in }
    return (info, try await kept(file, node.uuid, node.localUserID, info, options))
  }

  /// The same with a completion block (seeds 001, 002).
  ///
  /// - Parameters:
  ///   - completionQueue: where the block runs; nil for the main queue.
  ///   - completionBlock: called once, with a file or an error.
  /// - Returns: A ticket with the progress; through it the download can be given up.
  @discardableResult
  public func downloadNodeData(
    _ node: ZDCNode, options: ZDCDownloadOptions? = nil, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping DataCompletion
  ) -> ZDCDownloadTicket {
    let ticket = ZDCDownloadTicket()
    let tag = options?.completionTag.map { TagKey(node: node.uuid, tag: $0) }
    let isFirst = tag.map { tag in tags.withLock { $0.insert(tag).inserted } } ?? true
    let (uuid, user) = (node.uuid, node.localUserID)
    let task = Task {
      let result = await result(nodeUUID: uuid, user, options, ticket)
      if isFirst, let tag { _ = tags.withLock { $0.remove(tag) } }
      guard isFirst, !ticket.isIgnored else {
        if case .success(let download) = result, download.1.retainToken == nil {
          DownloadFolder.remove(download.1.fileURL)
        }
        return
      }
      (completionQueue ?? .main).async {
        switch result {
        case .success(let (info, file)): completionBlock(info, file, nil)
        case .failure(let error): completionBlock(nil, nil, error)
        }
      }
    }
    ticket.begin(task)
    return ticket
  }

  private func kept(
    _ file: ZDCCryptoFile, _ node: String, _ user: String, _ info: ZDCCloudDataInfo, _ options: ZDCDownloadOptions?
  ) async throws -> ZDCCryptoFile {
    guard let disk, let options, options.isKept else { return file }
    let content = DownloadedContent(localUserID: user, nodeID: node, info: info)
    return try await disk.keep(file, of: content, isPersistent: options.savePersistentlyToDiskManager)
  }

  private func result(
    nodeUUID: String, _ localUserID: String, _ options: ZDCDownloadOptions?, _ ticket: ZDCDownloadTicket
  ) async -> Result<(ZDCCloudDataInfo, ZDCCryptoFile), any Error> {
    do {
      let (info, file) = try await download(nodeUUID: nodeUUID) { ticket.report($0, of: $1) }
      return .success((info, try await kept(file, nodeUUID, localUserID, info, options)))
    } catch { return .failure(error) }
  }

  /// - Parameter mayWaitForOthers: a small content may travel in a request with others.
  func download(
    nodeUUID: String, mayWaitForOthers: Bool = true,
    progress: @escaping @Sendable (_ received: UInt64, _ total: UInt64) -> Void
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, cryptoFile: ZDCCryptoFile) {
    let target = try await database.asyncRead { try $0.contentTarget(nodeUUID: nodeUUID) }
    let total = target.cipherLength
    progress(0, total)
    let file = try await transfers.file(target.key, progress: { progress($0, total) }) { report in
      try await self.keepingEvidence(of: target) {
        try await self.transfer(target, mayWaitForOthers: mayWaitForOthers, report)
      }
    }
    return (target.info, file)
  }

  private func transfer(
    _ target: ContentTarget, mayWaitForOthers: Bool, _ report: @escaping ContentFetch.Progress
  ) async throws -> ZDCCryptoFile {
    let api = try await users.serverAPI(for: target.user)
    let url = try folder.newURL()
    if mayWaitForOthers, target.isSmall,
      let bytes = try await Patience.run({ try await batcher(target, api).content(target) })
    {
      let file = try Self.store(bytes, target, url)
      report(target.cipherLength)
      return file
    }
    return try await ContentFetch(api: api, target: target).download(
      to: url, partials: partials, progress: report)
  }

  private static func store(_ bytes: [UInt8], _ target: ContentTarget, _ url: URL) throws -> ZDCCryptoFile {
    var verifier = StreamVerifier(target.reference)
    try verifier.push(bytes)
    let leaves = try verifier.finish()
    let file = try LocalFile.create(url)
    do {
      try file.write(bytes)
    } catch {
      DownloadFolder.remove(url)
      throw error
    }
    return ZDCCryptoFile(fileURL: url, reference: target.reference, leaves: leaves)
  }

  private func batcher(_ target: ContentTarget, _ api: ServerAPI) -> SmallContentBatcher {
    batchers.withLock { batchers in
      let key = BatchKey(user: target.user, zone: target.zone)
      if let known = batchers[key] { return known }
      let zone = target.zone
      let batcher = SmallContentBatcher { try await api.contents(zone, $0) }
      batchers[key] = batcher
      return batcher
    }
  }
}
