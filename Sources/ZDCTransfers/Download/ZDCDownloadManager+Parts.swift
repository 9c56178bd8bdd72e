public import Foundation
internal import ZDCAccounts
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

extension ZDCDownloadManager {
  /// The completion block of ``downloadNodeMeta(_:components:options:completionQueue:completionBlock:)``.
  public typealias MetaCompletion =
    @Sendable (
      _ cloudDataInfo: ZDCCloudDataInfo?, _ metadata: Data?, _ thumbnail: Data?, _ error: (any Error)?
    ) -> Void

  /// Downloads metadata and thumbnail of a node's content without its data. The header needs no request.
  ///
  /// A request joins a running transfer that delivers everything it wants.
  ///
  /// ```swift
  /// let (info, metadata, thumbnail) = try await session.downloadManager.downloadNodeMeta(node, components: .all)
  /// print(info.dataSize, "bytes; none of the data was downloaded")
  /// ```
  ///
  /// - Parameters:
  ///   - node: the node whose content is downloaded.
  ///   - components: the sections to download.
  ///   - options: nil for options with `cacheToDiskManager`.
  /// - Returns: nil for a section that was not requested or is empty.
  /// - Throws: as ``downloadNodeData(_:options:)``.
  public func downloadNodeMeta(
    _ node: ZDCNode, components: ZDCNodeMetaComponents, options: ZDCDownloadOptions? = nil
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?) {
    let (key, options) = (DownloadKey(nodeID: node.uuid, part: .meta(components)), options?.values ?? .metaDefault)
    return try await withBackgroundRegistration(key, options) {
      try await fetchMeta(key, components, options, TransferInterest { _, _ in }, seen: node.eTag_data)
    }
  }

  /// Like ``downloadNodeMeta(_:components:options:)``, with a completion block.
  @discardableResult
  public func downloadNodeMeta(
    _ node: ZDCNode, components: ZDCNodeMetaComponents, options: ZDCDownloadOptions? = nil,
    completionQueue: DispatchQueue? = nil, completionBlock: @escaping MetaCompletion
  ) -> ZDCDownloadTicket {
    downloadNodeMeta(
      node.uuid, components, options?.values ?? .metaDefault, completionQueue, completionBlock, seen: node.eTag_data)
  }

  package func downloadNodeMeta(
    _ nodeID: String, _ components: ZDCNodeMetaComponents, _ options: ZDCDownloadOptions.Values,
    _ queue: DispatchQueue?, _ block: @escaping MetaCompletion, seen: String? = nil
  ) -> ZDCDownloadTicket {
    let key = DownloadKey(nodeID: nodeID, part: .meta(components))
    return run(key, options, queue) { [self] ticket in
      try await fetchMeta(key, components, options, ticket.interest, seen: seen)
    } discard: { _ in
    } complete: { result in
      switch result {
      case .success(let (info, metadata, thumbnail)): block(info, metadata, thumbnail, nil)
      case .failure(let error): block(nil, nil, nil, error)
      }
    }
  }

  /// Joins or starts the transfer.
  func fetchMeta(
    _ key: DownloadKey, _ components: ZDCNodeMetaComponents, _ options: ZDCDownloadOptions.Values,
    _ interest: TransferInterest, seen: String? = nil
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?) {
    let target = try await target(key.nodeID, seen: seen)
    let wanted = target.sections(of: components)
    var sections: Sections = [:]
    if !wanted.isEmpty {
      let listed = progressManager.begin(key, user: target.user.text, downloads: self)
      do {
        sections = try await metaTransfers.value(target.key, components.subtracting(.header), interest: interest) {
          [self] context in
          try await self.sections(wanted, target, context, listed)
        }
        listed.end(hasSucceeded: true)
      } catch {
        listed.end(hasSucceeded: false)
        throw error
      }
    }
    interest.report(1, 1)
    let thumbnail = components.contains(.thumbnail) ? sections[.thumbnail].map { Data($0) } : nil
    if components.contains(.thumbnail), options.isKept, let disk {
      let content = DownloadedContent(localUserID: target.user.text, nodeID: key.nodeID, info: target.info)
      try await keeping.run {
        try await disk.keepThumbnail(thumbnail, of: content, isPersistent: options.savePersistentlyToDiskManager)
      }
    }
    let metadata = components.contains(.metadata) ? sections[.metadata].map { Data($0) } : nil
    return (target.info, metadata, thumbnail)
  }

  private func sections(
    _ wanted: [ContentSection], _ target: ContentTarget, _ context: TransferContext, _ listed: ListedTransfer
  ) async throws -> Sections {
    let api = try await users.serverAPI(for: target.user)
    let report: TransferReport = { done, total in
      listed.report(done, of: total)
      context.report(done, of: total)
    }
    if let sections = try await handedOverSections(wanted, target) {
      report(target.cipherLength, target.cipherLength)
      return sections
    }
    return try await recordingSecurityErrors(of: target) {
      // Small content has one or two leaves: fetching all of it costs no more, and many nodes share a request.
      if target.isSmall, let bytes = try await small(target, api) {
        let opened = try ContentFetch(api: api, target: target).opened(bytes)
        report(target.cipherLength, target.cipherLength)
        return opened.filter { wanted.contains($0.key) }
      }
      return try await ContentFetch(api: api, target: target, policy: { [policy] in policy }).sections(
        wanted, report: report)
    }
  }

  /// Downloads a node's content straight into a new cleartext file, in one pass and constant memory.
  ///
  /// Intended for exports: twice as fast as opening a downloaded crypto file. The file appears complete or not at all:
  /// it is written under another name in the same folder and renamed at the end. If the network or the end of the
  /// process interrupts a large download, its hidden partial file stays there. The next call for the same content and
  /// folder verifies the file and continues.
  ///
  /// If the network delivers nothing, this method gives up after three attempts in a row, because a caller waits.
  ///
  /// ```swift
  /// try await session.downloadManager.downloadNodeData(node, toFile: url) { received, total in
  ///   print(received * 100 / max(1, total), "%")
  /// }
  /// ```
  ///
  /// - Returns: The record's description of the content, and its metadata.
  /// - Throws: as ``downloadNodeData(_:options:)``; `fileFailure` also if the folder cannot be written.
  public func downloadNodeData(
    _ node: ZDCNode, toFile url: URL,
    progress: @escaping @Sendable (_ received: UInt64, _ total: UInt64) -> Void = { _, _ in }
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, metadata: Data) {
    let target = try await target(node.uuid, seen: node.eTag_data)
    let api = try await users.serverAPI(for: target.user)
    let total = target.cipherLength
    let (partial, metadata) = try await recordingSecurityErrors(of: target) {
      try await ContentFetch(api: api, target: target)
        .open(in: url.deletingLastPathComponent()) { progress($0, total) }
    }
    do {
      try LocalFile.rename(partial, to: url)
    } catch {
      DownloadFolder.remove(partial)
      throw error
    }
    return (target.info, Data(metadata))
  }
}

extension ContentTarget {
  /// Returns the wanted sections that are not empty.
  func sections(of components: ZDCNodeMetaComponents) -> [ContentSection] {
    var sections: [ContentSection] = []
    if components.contains(.metadata), info.metadataSize > 0 { sections.append(.metadata) }
    if components.contains(.thumbnail), info.thumbnailSize > 0 { sections.append(.thumbnail) }
    return sections
  }
}

extension ContentFetch {
  /// Opens the sections of small content.
  func opened(_ bytes: [UInt8]) throws -> [ContentSection: [UInt8]] {
    do {
      let opened = try ContentOpener.openSmall(bytes, target.reference)
      return [.metadata: opened.metadata, .thumbnail: opened.thumbnail]
    } catch { throw located(error) }
  }
}
