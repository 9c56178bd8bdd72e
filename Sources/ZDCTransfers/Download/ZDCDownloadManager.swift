public import Foundation
internal import Synchronization
package import ZDCAccounts
package import ZDCClientAPI
package import ZDCClientStore
package import ZDCCrypto
internal import ZDCProtocol
package import ZDCSupport
public import ZDCTreesystem

/// Downloads nodes' contents when the app wants them (seeds 001, 002).
///
/// Any number of downloads may be asked for at once: requests for one node join one transfer, small contents travel
/// together, and of large ones a few run at a time. Memory stays bounded whatever the size. Nothing is handed out
/// before all of it was verified against the node's signed record. A network that fails is tried again up to eight
/// times in a row, with pauses that grow; what the server refuses fails at once.
///
/// ## Topics
/// ### Content
/// - ``downloadNodeData(_:options:)``
/// - ``downloadNodeData(_:toFile:progress:)``
/// - ``downloadContents(of:)``
/// ### Metadata and thumbnail
/// - ``downloadNodeMeta(_:components:options:)``
public final class ZDCDownloadManager: Sendable {
  /// What a completion block gets.
  public typealias DataCompletion =
    @Sendable (_ cloudDataInfo: ZDCCloudDataInfo?, _ cryptoFile: ZDCCryptoFile?, _ error: (any Error)?) -> Void

  package typealias Sections = [ContentSection: [UInt8]]

  package let database: ZDCDatabaseConnection
  package let users: ZDCLocalUserManager
  package let primaryTreeID: String
  package let folder: DownloadFolder
  package let partials: PartialFolder
  package let policy: Patience.Policy
  package let slots: TransferSlots
  package let transfers: TransferTable<ZDCCryptoFile>
  package let metaTransfers = TransferTable<Sections>(share: { $0 }, discard: { _ in })
  package let tags = CompletionTags()
  let writerBarrier = WriterBarrier()
  package let progressManager: ZDCProgressManager
  package let background: BackgroundDownloads
  package let delegate: (any BackgroundDownloadDelegate)?
  /// Keeps results; nil where nothing does.
  package let disk: ZDCDiskManager?
  /// Of a thousand who asked for the same the first keeps it, and the others find it kept.
  package let keeping = TaskGate()
  #if canImport(Darwin) && !os(macOS)
    let system: SystemDownloads
  #endif
  /// Goes on with what ended processes have left.
  package let running = Locked<Task<Void, Never>?>(nil)
  let batchers = Mutex<[BatchKey: SmallContentBatcher]>([:])

  struct BatchKey: Hashable {
    package var user: UserID
    package var zone: ZoneID
  }

  /// - Parameters:
  ///   - name: the system knows its downloads for this database by it, in every launch.
  ///   - partials: where large downloads that were cut off wait for their next try.
  ///   - delegate: who is told of downloads that outlived their process.
  ///   - sleep: how the pauses between tries pass.
  package init(
    database: ZDCDatabaseConnection, users: ZDCLocalUserManager, primaryTreeID: String, name: String = "",
    disk: ZDCDiskManager? = nil, folder: DownloadFolder = DownloadFolder(), partials: URL,
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
    #if canImport(Darwin) && !os(macOS)
      // One session a database; the system keeps it under its name between launches.
      system = SystemDownloads(name: name, partials: self.partials) {}
    #endif
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
  /// May be called inside a delegate callback or another block of a transaction, also from a task that it starts: the
  /// download begins after the commit and brings the version that the node had there.
  ///
  /// - Returns: What the record says about it, and a file of ciphertext that belongs to the caller: open it with
  ///   ``ZDCFileConversion`` and delete it, unless the disk manager keeps it.
  /// - Throws: ``ZDCError`` with `nodeNotFound`, `nodeNotUploaded`, `noContent`, `diskFull` or `fileFailure`;
  ///   `ZDCSecurityError` with `contentHashMismatch`, `contentTruncated`, `contentTrailingData` or `objectMissing`;
  ///   `ServerError` with `blobGone` if it was replaced or deleted meanwhile, or with what the server refuses;
  ///   ``TransportError``; `CancellationError`.
  public func downloadNodeData(
    _ node: ZDCNode, options: ZDCDownloadOptions? = nil
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, cryptoFile: ZDCCryptoFile) {
    let (key, options) = (DownloadKey(nodeID: node.uuid, part: .data), options?.values ?? .init())
    return try await attended(key, options) {
      try await fetchData(key, options, TransferInterest { _, _ in }, seen: node.eTag_data)
    }
  }

  /// The same with a completion block (seeds 001, 002).
  ///
  /// - Parameters:
  ///   - node: whose content.
  ///   - options: who keeps the file, and whether the download outlives the app; nil for neither.
  ///   - completionQueue: where the block runs; nil for the main queue.
  ///   - completionBlock: called once, with a file or an error; `transactionRolledBack` if this was called inside a
  ///     transaction that was rolled back.
  /// - Returns: A ticket with the progress; through it the download can be given up.
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

  /// Joins or starts the transfer. The register of background downloads is the caller's business.
  func fetchData(
    _ key: DownloadKey, _ options: ZDCDownloadOptions.Values, _ interest: TransferInterest, seen: String? = nil
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, cryptoFile: ZDCCryptoFile) {
    let target = try await target(key.nodeID, seen: seen)
    let listed = progressManager.begin(key, user: target.user.text, downloads: self)
    interest.report(0, target.cipherLength)
    do {
      let file = try await transfers.value(target.key, interest: interest) { [self] context in
        try await keepingEvidence(of: target) { try await transfer(target, context, listed) }
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

  private func transfer(
    _ target: ContentTarget, _ context: TransferContext, _ listed: ListedTransfer
  ) async throws -> ZDCCryptoFile {
    let report: ContentFetch.Progress = { received in
      listed.report(received, of: target.cipherLength)
      context.report(received, of: target.cipherLength)
    }
    let api = try await users.serverAPI(for: target.user)
    let url = try folder.newURL()
    if context.isPatient, target.isSmall, let bytes = try await small(target, api) {
      let file = try Self.store(bytes, target, url)
      report(target.cipherLength)
      return file
    }
    let fetch = ContentFetch(
      api: api, target: target, policy: { [policy] in context.isPatient ? policy : policy.shortened })
    guard fetch.isResumable else { return try await fetch.download(to: url, partials: partials, progress: report) }
    return try await slots.run(context) { [slots] in
      try await fetch.download(to: url, partials: partials, progress: report) { try slots.check(context) }
    }
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

  // MARK: Small contents

  /// The ciphertext of a small content, not yet verified, together with others that are asked for now; nil if the
  /// server left it out.
  package func small(_ target: ContentTarget, _ api: ServerAPI) async throws -> [UInt8]? {
    try await Patience.run(self.policy) { try await batcher(target, api).content(target) }
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
  /// What the disk manager keeps is not the caller's to delete.
  func removeUnlessKept() {
    if retainToken == nil { DownloadFolder.remove(fileURL) }
  }
}

extension DownloadFolder {
  /// The same content in a file of its own.
  package func duplicate(_ file: ZDCCryptoFile) throws -> ZDCCryptoFile {
    ZDCCryptoFile(fileURL: try duplicate(file.fileURL), reference: file.reference, leaves: file.leaves)
  }
}
