public import Foundation
internal import ZDCSupport

extension ZDCProgressManager {
  // MARK: Data and metadata

  /// Returns the nodes that have a download in progress.
  ///
  /// ```swift
  /// for nodeID in zdc.progressManager.allDownloadingNodeIDs() { refreshRow(nodeID) }
  /// ```
  public func allDownloadingNodeIDs() -> Set<String> { downloads { _ in true } }

  /// Returns the nodes of a local user that have a download in progress.
  public func allDownloadingNodeIDs(_ localUserID: String) -> Set<String> {
    downloads { $0.localUserID == localUserID }
  }

  /// Returns the progress of the node's data download or else that of its metadata and thumbnail.
  ///
  /// ```swift
  /// if let progress = zdc.progressManager.downloadProgress(forNodeID: node.uuid) {
  ///   print(Int(progress.fractionCompleted * 100), "%")
  /// }
  /// ```
  public func downloadProgress(forNodeID nodeID: String) -> Progress? {
    dataDownloadProgress(forNodeID: nodeID) ?? metaDownloadProgress(forNodeID: nodeID)
  }

  private func downloads(where isWanted: (ZDCProgressManagerChanges) -> Bool) -> Set<String> {
    state.withLock { state in
      Set(
        state.entries.values.map(\.change).filter { $0.progressType != .upload && isWanted($0) }.map(\.nodeID))
    }
  }

  // MARK: Metadata and thumbnails

  /// Returns the nodes whose metadata or thumbnail is being downloaded.
  public func allMetaDownloadingNodeIDs() -> Set<String> { downloads { $0.progressType == .metaDownload } }

  /// Returns the nodes of a local user whose metadata or thumbnail is being downloaded.
  public func allMetaDownloadingNodeIDs(_ localUserID: String) -> Set<String> {
    downloads { $0.progressType == .metaDownload && $0.localUserID == localUserID }
  }

  /// Returns the progress of a download of the node's metadata or thumbnail, whichever parts it includes.
  ///
  /// ```swift
  /// let isLoading = zdc.progressManager.metaDownloadProgress(forNodeID: node.uuid) != nil
  /// ```
  public func metaDownloadProgress(forNodeID nodeID: String) -> Progress? {
    metaEntry(nodeID, bringing: []).flatMap(progress)
  }

  /// Returns the progress of a download that includes at least these parts.
  public func metaDownloadProgress(forNodeID nodeID: String, components: ZDCNodeMetaComponents) -> Progress? {
    metaEntry(nodeID, bringing: components).flatMap(progress)
  }

  /// Returns the same progress and adds a block, which receives the result as if the download had been requested here.
  ///
  /// - Returns: nil if no such download is in progress; the block is not called then.
  public func metaDownloadProgress(
    forNodeID nodeID: String, components: ZDCNodeMetaComponents, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping ZDCDownloadManager.MetaCompletion
  ) -> Progress? {
    guard let progress = metaDownloadProgress(forNodeID: nodeID, components: components),
      addMetaDownloadListener(
        forNodeID: nodeID, components: components, completionQueue: completionQueue, completionBlock: completionBlock)
    else { return nil }
    return progress
  }

  /// Adds a block to a download in progress that includes at least these parts.
  ///
  /// - Returns: false if no such download is in progress; the block is not called then.
  @discardableResult
  public func addMetaDownloadListener(
    forNodeID nodeID: String, components: ZDCNodeMetaComponents, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping ZDCDownloadManager.MetaCompletion
  ) -> Bool {
    guard metaEntry(nodeID, bringing: components) != nil, let downloads = state.withLock({ $0.downloads }) else {
      return false
    }
    _ = downloads.downloadNodeMeta(nodeID, components, .init(), completionQueue, completionBlock)
    return true
  }

  private func metaEntry(_ nodeID: String, bringing components: ZDCNodeMetaComponents) -> Key? {
    state.withLock { state in
      state.entries.first { key, entry in
        guard case .download(let download) = key, case .meta(let parts) = download.part else { return false }
        return entry.isActive && download.nodeID == nodeID && parts.isSuperset(of: components.subtracting(.header))
      }?.key
    }
  }

  // MARK: Data

  /// Returns the nodes whose data is being downloaded.
  public func allDataDownloadingNodeIDs() -> Set<String> { downloads { $0.progressType == .dataDownload } }

  /// Returns the nodes of a local user whose data is being downloaded.
  public func allDataDownloadingNodeIDs(_ localUserID: String) -> Set<String> {
    downloads { $0.progressType == .dataDownload && $0.localUserID == localUserID }
  }

  /// Returns the progress of the download of a node's data; nil if there is none.
  ///
  /// ```swift
  /// let fraction = zdc.progressManager.dataDownloadProgress(forNodeID: node.uuid)?.fractionCompleted ?? 0
  /// ```
  public func dataDownloadProgress(forNodeID nodeID: String) -> Progress? {
    progress(.download(DownloadKey(nodeID: nodeID, part: .data)))
  }

  /// Returns the same progress and adds a block, which receives the result as if the download had been requested here.
  /// The block must delete the file.
  ///
  /// - Returns: nil if the node's data is not being downloaded; the block is not called then.
  public func dataDownloadProgress(
    forNodeID nodeID: String, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping ZDCDownloadManager.DataCompletion
  ) -> Progress? {
    guard let progress = dataDownloadProgress(forNodeID: nodeID),
      addDataDownloadListener(
        forNodeID: nodeID, completionQueue: completionQueue, completionBlock: completionBlock)
    else { return nil }
    return progress
  }

  /// Adds a block to the download of the node's data.
  ///
  /// For a view that appears while a download is running, which other code has requested:
  ///
  /// ```swift
  /// let isRunning = zdc.progressManager.addDataDownloadListener(forNodeID: node.uuid) { info, file, error in
  ///   if let file { importDocument(file, of: node) }
  /// }
  /// if !isRunning { askToDownload(node) }
  /// ```
  ///
  /// - Returns: false if the node's data is not being downloaded; the block is not called then.
  @discardableResult
  public func addDataDownloadListener(
    forNodeID nodeID: String, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping ZDCDownloadManager.DataCompletion
  ) -> Bool {
    guard dataDownloadProgress(forNodeID: nodeID) != nil, let downloads = state.withLock({ $0.downloads }) else {
      return false
    }
    _ = downloads.downloadNodeData(nodeID, .init(), completionQueue, completionBlock)
    return true
  }
}

// MARK: For the download manager

/// One request's part in an entry of the manager's list.
package struct ListedTransfer: Sendable {
  fileprivate let manager: ZDCProgressManager
  fileprivate let key: ZDCProgressManager.Key
  fileprivate let id: Int

  package func report(_ done: UInt64, of total: UInt64) { manager.report(key, done, of: total) }

  package func end(hasSucceeded: Bool) { manager.end(key, hasSucceeded ? .done : .failed, id: id) }
}

extension ZDCProgressManager {
  package func begin(_ download: DownloadKey, user: String, downloads: ZDCDownloadManager) -> ListedTransfer {
    state.withLock { $0.downloads = downloads }
    let (type, components): (ZDCProgressType, ZDCNodeMetaComponents) =
      switch download.part {
      case .data: (.dataDownload, [])
      case .meta(let components): (.metaDownload, components)
      }
    let entry = begin(
      .download(download),
      ZDCProgressManagerChanges(
        progressType: type, localUserID: user, nodeID: download.nodeID, metaComponents: components,
        operationUUID: nil, isDataUpload: false))
    return ListedTransfer(manager: self, key: .download(download), id: entry.id)
  }
}
