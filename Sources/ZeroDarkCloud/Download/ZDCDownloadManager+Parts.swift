public import Foundation
internal import ZDCCrypto
public import ZDCTreesystem

extension ZDCDownloadManager {
  /// What a completion block of ``downloadNodeMeta(_:components:options:completionQueue:completionBlock:)`` gets.
  public typealias MetaCompletion =
    @Sendable (
      _ cloudDataInfo: ZDCCloudDataInfo?, _ metadata: Data?, _ thumbnail: Data?, _ error: (any Error)?
    ) -> Void

  /// Downloads metadata and thumbnail of a node's content without its data.
  ///
  /// - Parameter options: without any the disk manager caches the thumbnail.
  /// - Returns: nil for a section that was not asked for or is empty.
  /// - Throws: as ``downloadNodeData(_:options:)``.
  public func downloadNodeMeta(
    _ node: ZDCNode, components: ZDCNodeMetaComponents, options: ZDCDownloadOptions? = nil
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?) {
    try await meta(node, components, options)
  }

  /// The same with a completion block (seed 001).
  @discardableResult
  public func downloadNodeMeta(
    _ node: ZDCNode, components: ZDCNodeMetaComponents, options: ZDCDownloadOptions? = nil,
    completionQueue: DispatchQueue? = nil, completionBlock: @escaping MetaCompletion
  ) -> ZDCDownloadTicket {
    let ticket = ZDCDownloadTicket()
    let task = Task {
      let result: Result<(ZDCCloudDataInfo, Data?, Data?), any Error>
      do {
        result = .success(try await meta(node, components, options))
      } catch { result = .failure(error) }
      guard !ticket.isIgnored else { return }
      (completionQueue ?? .main).async {
        switch result {
        case .success(let (info, metadata, thumbnail)): completionBlock(info, metadata, thumbnail, nil)
        case .failure(let error): completionBlock(nil, nil, nil, error)
        }
      }
    }
    ticket.begin(task)
    return ticket
  }

  private func meta(
    _ node: ZDCNode, _ components: ZDCNodeMetaComponents, _ options: ZDCDownloadOptions?
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?) {
    let uuid = node.uuid
    let target = try await database.asyncRead { try $0.contentTarget(nodeUUID: uuid) }
    let sections = try await sections(target, components)
    let thumbnail = sections[.thumbnail].map { Data($0) }
    if components.contains(.thumbnail), options?.isKept ?? true {
      try await disk?.keepThumbnail(
        thumbnail, of: DownloadedContent(localUserID: node.localUserID, nodeID: uuid, info: target.info),
        isPersistent: options?.savePersistentlyToDiskManager ?? false)
    }
    return (target.info, sections[.metadata].map { Data($0) }, thumbnail)
  }

  private func sections(
    _ target: ContentTarget, _ components: ZDCNodeMetaComponents
  ) async throws -> [ContentSection: [UInt8]] {
    var wanted: [ContentSection] = []
    if components.contains(.metadata), target.info.metadataSize > 0 { wanted.append(.metadata) }
    if components.contains(.thumbnail), target.info.thumbnailSize > 0 { wanted.append(.thumbnail) }
    guard !wanted.isEmpty else { return [:] }
    let api = try await users.serverAPI(for: target.user)
    return try await keepingEvidence(of: target) {
      try await ContentFetch(api: api, target: target).sections(wanted)
    }
  }

  /// Downloads a node's content straight into a new cleartext file, in one pass and constant memory.
  ///
  /// For exports: twice as fast as a crypto file that is opened afterwards. The file is there, whole, or not at all: it
  /// is written under another name in the same folder and renamed at the end. A large one that the network or the end of
  /// the process cut off is left there, hidden; the next call for the same content and folder verifies it and goes on.
  ///
  /// - Returns: What the record says about the content, and its metadata.
  /// - Throws: as ``downloadNodeData(_:options:)``; `fileFailure` also if the folder cannot be written.
  public func downloadNodeData(
    _ node: ZDCNode, toFile url: URL,
    progress: @escaping @Sendable (_ received: UInt64, _ total: UInt64) -> Void = { _, _ in }
  ) async throws -> (cloudDataInfo: ZDCCloudDataInfo, metadata: Data) {
    let uuid = node.uuid
    let target = try await database.asyncRead { try $0.contentTarget(nodeUUID: uuid) }
    let api = try await users.serverAPI(for: target.user)
    let total = target.cipherLength
    let (partial, metadata) = try await keepingEvidence(of: target) {
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
