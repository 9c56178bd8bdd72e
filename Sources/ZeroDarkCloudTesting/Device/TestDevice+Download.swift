internal import Foundation
internal import ZDCTreesystem
internal import ZeroDarkCloud

extension TestDevice {
  /// Downloads all content whose newest version the app does not have, small content in batches.
  ///
  /// Content with a queued edit is merged line by line if ``RecordingDelegate/dataConflictPolicy`` is `mergeLines`, and
  /// left alone otherwise.
  ///
  /// ```swift
  /// b.recorder.dataConflictPolicy = .mergeLines
  /// try await b.sync()
  /// try await b.download()  // and merges what both devices changed
  /// try await b.sync()
  /// ```
  ///
  /// - Returns: The number of downloads.
  @discardableResult
  public func download(user: String? = nil) async throws -> Int {
    try await download(try await outdatedNodes(user: user), user: user)
  }

  /// Downloads only content whose upload is held by a conflict, and merges it.
  ///
  /// ```swift
  /// try await b.sync()
  /// #expect(try await b.mergeConflicts() == 1)
  /// ```
  ///
  /// - Returns: The number of downloads.
  @discardableResult
  public func mergeConflicts(user: String? = nil) async throws -> Int {
    let held = try await write(user: user) { transaction, cloud in
      try Self.heldNodes(transaction, user: cloud.localUserID).compactMap { cloud.node(id: $0) }
    }
    return try await download(held, user: user)
  }

  private func download(_ wanted: [ZDCNode], user: String?) async throws -> Int {
    guard !wanted.isEmpty else { return 0 }
    guard let manager = try zdc.downloadManager else { throw TestFailure("\(name)'s database is locked") }
    var count = 0
    for try await download in manager.downloadContents(of: wanted) {
      let (data, metadata, thumbnail) = try Self.opened(try download.content.get())
      let node = download.node
      try await write(user: user) { [recorder] transaction, cloud in
        try recorder.take(data, metadata, thumbnail, node: node, transaction, cloud)
      }
      count += 1
    }
    return count
  }

  private func outdatedNodes(user: String?) async throws -> [ZDCNode] {
    let merges = recorder.dataConflictPolicy == .mergeLines
    return try await write(user: user) { transaction, cloud in
      try Self.allNodes(transaction, user: cloud.localUserID).compactMap { id -> ZDCNode? in
        guard let node = cloud.node(id: id), let eTag = node.eTag_data else { return nil }
        guard try RecordingDelegate.content(of: node, transaction)?.eTag != eTag else { return nil }
        return merges || !cloud.hasPendingDataUploads(forNodeID: id) ? node : nil
      }
    }
  }

  private static func opened(_ content: ZDCNodeContent) throws -> (Data, Data, Data) {
    switch content {
    case .memory(let data, let metadata, let thumbnail): return (data, metadata, thumbnail)
    case .file(let file):
      defer { discard(file.fileURL) }
      return (
        try ZDCFileConversion.decryptCryptoFile(intoMemory: file), try ZDCFileConversion.decryptMetadata(of: file),
        try ZDCFileConversion.decryptThumbnail(of: file)
      )
    }
  }

  /// Removes a file. Errors are ignored, because its folder is deleted anyway.
  private static func discard(_ url: URL) { try? FileManager.default.removeItem(at: url) }
}

extension RecordingDelegate {
  fileprivate func take(
    _ data: Data, _ metadata: Data, _ thumbnail: Data, node: ZDCNode, _ transaction: ZDCReadWriteTransaction,
    _ cloud: ZDCCloudTransaction
  ) throws {
    // The node was deleted or changed again since the download started.
    guard cloud.node(id: node.uuid)?.eTag_data == node.eTag_data, let eTag = node.eTag_data else { return }
    var content = TestContent(
      data: data, metadata: metadata.isEmpty ? nil : metadata, thumbnail: thumbnail.isEmpty ? nil : thumbnail,
      eTag: eTag)
    if cloud.hasPendingDataUploads(forNodeID: node.uuid) {
      content.data = try Self.content(of: node, transaction)?.merged(with: data) ?? data
      Self.store(content, of: node, transaction)
      cloud.didMergeData(withETag: eTag, forNodeID: node.uuid)
    } else {
      Self.store(content, of: node, transaction)
    }
  }
}
