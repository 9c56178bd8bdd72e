public import Foundation
internal import Synchronization
package import ZDCAccounts
package import ZDCClientAPI
package import ZDCClientStore
package import ZDCCrypto
internal import ZDCProtocol
package import ZDCSupport
public import ZDCTreesystem

/// Downloads nodes' content on demand.
///
/// Any number of downloads may be requested at the same time. Requests for one node join one transfer, small content is
/// fetched in batches, and only a few large transfers run at a time. Memory use is bounded whatever the size. Content
/// is handed out only after all of it is verified against the node's signed record. Network failures are retried up to
/// eight times in a row, with growing pauses. A request that the server refuses fails immediately.
///
/// ## Topics
/// ### Content
/// - ``downloadNodeData(_:options:)``
/// - ``downloadNodeData(_:toFile:progress:)``
/// - ``downloadContents(of:)``
/// ### Metadata and thumbnail
/// - ``downloadNodeMeta(_:components:options:)``
///
/// ```swift
/// let (info, file) = try await session.downloadManager.downloadNodeData(node)
/// print(info.dataSize, "bytes")
/// importDocument(file, of: node)
/// ```
public final class ZDCDownloadManager: Sendable {
  /// The completion block of a download of data.
  public typealias DataCompletion =
    @Sendable (_ cloudDataInfo: ZDCCloudDataInfo?, _ cryptoFile: ZDCCryptoFile?, _ error: (any Error)?) -> Void

  package typealias Sections = [ContentSection: [UInt8]]

  package let database: ZDCDatabaseConnection
  package let users: ZDCLocalUserManager
  package let primaryTreeID: String
  package let folder: DownloadFolder
  package let partials: PartialFolder
  package let policy: TransferRetry.Policy
  package let slots: TransferSlots
  package let transfers: TransferTable<ZDCCryptoFile>
  package let metaTransfers = TransferTable<Sections>(share: { $0 }, discard: { _ in })
  package let tags = CompletionTags()
  let writerBarrier = WriterBarrier()
  package let progressManager: ZDCProgressManager
  package let background: BackgroundDownloads
  package let delegate: (any BackgroundDownloadDelegate)?
  /// The disk manager that keeps results; nil if none are kept.
  package let disk: ZDCDiskManager?
  /// Serializes requests that keep the same content: the first one stores it, and the others find it stored.
  package let keeping = TaskGate()
  package let handOver: TransferHandOver
  /// The task that resumes the downloads of ended processes.
  package let running = Locked<Task<Void, Never>?>(nil)
  /// Number of resumed downloads in progress, until the app has received the result.
  let resuming = Locked(0)
  let resumingChanges = Broadcast<Void>(limit: 1)
  let batchers = Mutex<[BatchKey: SmallContentBatcher]>([:])

  struct BatchKey: Hashable {
    package var user: UserID
    package var zone: ZoneID
  }

  /// - Parameters:
  ///   - partials: the folder in which interrupted large downloads wait for their next attempt.
  ///   - handOver: transfers that the system continues while the app is suspended.
  ///   - delegate: notified of downloads that outlived their process.
  ///   - sleep: waits between attempts.
  package init(
    database: ZDCDatabaseConnection, users: ZDCLocalUserManager, primaryTreeID: String,
    disk: ZDCDiskManager? = nil, folder: DownloadFolder = DownloadFolder(), partials: URL,
    handOver: TransferHandOver = .unavailable,
    progress: ZDCProgressManager = ZDCProgressManager(), delegate: (any BackgroundDownloadDelegate)? = nil,
    slots: TransferSlots = TransferSlots(),
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.database = database
    self.users = users
    self.primaryTreeID = primaryTreeID
    self.disk = disk
    self.folder = folder
    self.partials = PartialFolder(url: partials)
    progressManager = progress
    self.delegate = delegate
    self.slots = slots
    policy = .downloads(sleep)
    self.handOver = handOver
    background = BackgroundDownloads(database: database, folder: partials)
    transfers = TransferTable(
      share: { try folder.duplicate($0) }, discard: { DownloadFolder.remove($0.fileURL) })
  }

  deinit {
    folder.removeIfEmpty()
  }

  // MARK: Content

  /// Downloads the newest content of a node that this device knows of.
  ///
  /// May be called inside a delegate callback or another block of a transaction, or from a task started there. The
  /// download then begins after the commit and delivers the version that the node had in the transaction.
  ///
  /// ```swift
  /// let (info, file) = try await session.downloadManager.downloadNodeData(node)
  /// defer { session.diskManager.deleteFileIfUnmanaged(file.fileURL) }
  /// let task = try JSONDecoder().decode(Task.self, from: ZDCFileConversion.decryptCryptoFile(intoMemory: file))
  /// ```
  ///
  /// - Returns: The record's description of the content, and a file of ciphertext that belongs to the caller. Open it
  ///   with ``ZDCFileConversion`` and delete it, unless the disk manager keeps it.
  /// - Throws: ``ZDCError`` with `nodeNotFound`, `nodeNotUploaded`, `noContent`, `diskFull` or `fileFailure`;
  ///   `ZDCSecurityError` with `contentHashMismatch`, `contentTruncated`, `contentTrailingData` or `objectMissing`;
  ///   `ZDCServerError` with `blobGone` if the content was replaced or deleted in the meantime, or for any other refusal
  ///   of the server; ``ZDCTransportError``; `CancellationError`.
  public func downloadNodeData(
    _ node: ZDCNode, options: ZDCDownloadOptions? = nil
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, cryptoFile: ZDCCryptoFile) {
    let (key, options) = (DownloadKey(nodeID: node.uuid, part: .data), options?.values ?? .init())
    return try await withBackgroundRegistration(key, options) {
      try await fetchData(key, options, TransferInterest { _, _ in }, seen: node.eTag_data)
    }
  }

  /// Like ``downloadNodeData(_:options:)``, with a completion block.
  ///
  /// ```swift
  /// let ticket = session.downloadManager.downloadNodeData(node) { info, file, error in
  ///   if let file { importDocument(file, of: node) }
  /// }
  /// cancelButton.action = { ticket.cancel() }
  /// ```
  ///
  /// - Parameters:
  ///   - node: the node whose content is downloaded.
  ///   - options: whether the disk manager keeps the file, and whether the download outlives the app; nil for neither.
  ///   - completionQueue: the queue of the block; nil for the main queue.
  ///   - completionBlock: called once, with a file or an error; `transactionRolledBack` if this method was called
  ///     inside a transaction that was rolled back.
  /// - Returns: a ticket with the progress, which can also cancel the download.
  @discardableResult
  public func downloadNodeData(
    _ node: ZDCNode, options: ZDCDownloadOptions? = nil, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping DataCompletion
  ) -> ZDCDownloadTicket {
    downloadNodeData(node.uuid, options?.values ?? .init(), completionQueue, completionBlock, seen: node.eTag_data)
  }

  package func downloadNodeData(
    _ nodeID: String, _ options: ZDCDownloadOptions.Values, _ queue: DispatchQueue?,
    _ block: @escaping DataCompletion, seen: String? = nil
  ) -> ZDCDownloadTicket {
    let key = DownloadKey(nodeID: nodeID, part: .data)
    return run(key, options, queue) { [self] ticket in
      try await fetchData(key, options, ticket.interest, seen: seen)
    } discard: {
      $0.cryptoFile.removeUnlessKept()
    } complete: { result in
      switch result {
      case .success(let (info, file)): block(info, file, nil)
      case .failure(let error): block(nil, nil, error)
      }
    }
  }

  /// Joins or starts the transfer. The caller manages the register of background downloads.
  func fetchData(
    _ key: DownloadKey, _ options: ZDCDownloadOptions.Values, _ interest: TransferInterest, seen: String? = nil
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, cryptoFile: ZDCCryptoFile) {
    let target = try await target(key.nodeID, seen: seen)
    let listed = progressManager.begin(key, user: target.user.text, downloads: self)
    // Both have a total before the first answer, which can take many attempts.
    listed.report(0, of: target.cipherLength)
    interest.report(0, target.cipherLength)
    do {
      let file = try await transfers.value(target.key, interest: interest) { [self] context in
        try await recordingSecurityErrors(of: target) { try await transfer(target, context, listed) }
      }
      listed.end(hasSucceeded: true)
      return (target.info, try await kept(file, key, target, options))
    } catch {
      listed.end(hasSucceeded: false)
      throw error
    }
  }

  private func kept(
    _ file: ZDCCryptoFile, _ key: DownloadKey, _ target: ContentTarget, _ options: ZDCDownloadOptions.Values
  ) async throws -> ZDCCryptoFile {
    guard options.isKept, let disk else { return file }
    let content = DownloadedContent(localUserID: target.user.text, nodeID: key.nodeID, info: target.info)
    do {
      return try await keeping.run {
        try await disk.keep(file, of: content, isPersistent: options.savePersistentlyToDiskManager)
      }
    } catch {
      DownloadFolder.remove(file.fileURL)
      throw error
    }
  }

  func transfer(
    _ target: ContentTarget, _ context: TransferContext, _ listed: ListedTransfer
  ) async throws -> ZDCCryptoFile {
    let report: ContentFetch.Progress = { received in
      listed.report(received, of: target.cipherLength)
      context.report(received, of: target.cipherLength)
    }
    let api = try await users.serverAPI(for: target.user)
    let url = try folder.newURL()
    if let file = try await handedOverFile(target, url) {
      report(target.cipherLength)
      return file
    }
    if context.usesLongRetries, target.isSmall, let bytes = try await small(target, api) {
      let file = try Self.store(bytes, target, url)
      report(target.cipherLength)
      return file
    }
    let fetch = ContentFetch(
      api: api, target: target, policy: { [policy] in context.usesLongRetries ? policy : policy.shortened })
    guard fetch.isResumable else {
      return try await fetch.download(to: url, partials: partials, handOver: handOver, progress: report)
    }
    return try await slots.run(context) { [slots, handOver] in
      try await fetch.download(to: url, partials: partials, handOver: handOver, progress: report) {
        try slots.check(context)
        try handOver.check(.blob(target.blob))
      }
    }
  }

  static func store(_ bytes: [UInt8], _ target: ContentTarget, _ url: URL) throws -> ZDCCryptoFile {
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

  // MARK: Small content

  /// Returns the ciphertext of small content, not yet verified; nil if the server left it out. Other content requested
  /// now shares the request.
  package func small(_ target: ContentTarget, _ api: ServerAPI) async throws -> [UInt8]? {
    try await TransferRetry.run(self.policy) { try await batcher(target, api).content(target) }
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

extension ZDCCryptoFile {
  /// Removes the file, unless the disk manager keeps it: then it is not the caller's to delete.
  func removeUnlessKept() {
    if retainToken == nil { DownloadFolder.remove(fileURL) }
  }
}

extension DownloadFolder {
  /// Returns the same content in a separate file.
  package func duplicate(_ file: ZDCCryptoFile) throws -> ZDCCryptoFile {
    ZDCCryptoFile(fileURL: try duplicate(file.fileURL), reference: file.reference, leaves: file.leaves)
  }
}
