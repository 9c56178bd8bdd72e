public import Foundation
internal import ZDCCrypto
public import ZDCTreesystem

extension ZDCImageLoader {
  /// Fetches a node's thumbnail for the user interface (seed 002).
  ///
  /// - Parameters:
  ///   - node: whose thumbnail.
  ///   - options: nil for the usual ones.
  ///   - preFetch: called before this returns, on the calling thread.
  ///   - postFetch: called on the main thread.
  /// - Returns: a ticket of the download; nil if there is nothing to download.
  @discardableResult
  public func fetchNodeThumbnail(
    _ node: ZDCNode, with options: ZDCFetchOptions? = nil, preFetch: (_ image: Image?, _ willFetch: Bool) -> Void,
    postFetch: @escaping @MainActor @Sendable (_ image: Image?, _ error: (any Error)?) -> Void
  ) -> ZDCDownloadTicket? {
    fetch(node, ImageRequest(options), preFetch, ImageDelivery(onMain: postFetch))
  }

  /// The same for callers that are not on the main thread: `postFetch` is called on `completionQueue`, nil for the main
  /// queue.
  @_disfavoredOverload
  @discardableResult
  public func fetchNodeThumbnail(
    _ node: ZDCNode, with options: ZDCFetchOptions? = nil, completionQueue: DispatchQueue? = nil,
    preFetch: (_ image: Image?, _ willFetch: Bool) -> Void,
    postFetch: sending @escaping (_ image: Image?, _ error: (any Error)?) -> Void
  ) -> ZDCDownloadTicket? {
    fetch(node, ImageRequest(options), preFetch, ImageDelivery(on: completionQueue ?? .main, postFetch))
  }

  /// Fetches a variant of a node's thumbnail.
  ///
  /// - Parameters:
  ///   - node: whose thumbnail.
  ///   - options: nil for the usual ones.
  ///   - processingID: names the variant in memory, where it is found again; nil: it is made each time.
  ///   - processingBlock: makes it.
  ///   - preFetch: called before this returns, on the calling thread.
  ///   - postFetch: called on the main thread.
  @discardableResult
  public func fetchNodeThumbnail(
    _ node: ZDCNode, with options: ZDCFetchOptions? = nil, processingID: String?,
    processingBlock: @escaping Processing, preFetch: (_ image: Image?, _ willFetch: Bool) -> Void,
    postFetch: @escaping @MainActor @Sendable (_ image: Image?, _ error: (any Error)?) -> Void
  ) -> ZDCDownloadTicket? {
    fetch(node, ImageRequest(options, processingID, processingBlock), preFetch, ImageDelivery(onMain: postFetch))
  }

  /// The same for callers that are not on the main thread.
  @_disfavoredOverload
  @discardableResult
  public func fetchNodeThumbnail(
    _ node: ZDCNode, with options: ZDCFetchOptions? = nil, processingID: String?,
    processingBlock: @escaping Processing, completionQueue: DispatchQueue? = nil,
    preFetch: (_ image: Image?, _ willFetch: Bool) -> Void,
    postFetch: sending @escaping (_ image: Image?, _ error: (any Error)?) -> Void
  ) -> ZDCDownloadTicket? {
    fetch(
      node, ImageRequest(options, processingID, processingBlock), preFetch,
      ImageDelivery(on: completionQueue ?? .main, postFetch))
  }

  // MARK: What is known

  /// What this device knows of a node's thumbnail without looking at it.
  struct Facts: Sendable {
    var isMarked = false
    /// The version in the cloud; nil if there is none.
    var eTag: String?
    var hasThumbnail = false

    /// Marked without a content in the cloud: there is nothing to get.
    var needsDownload: Bool { isMarked && eTag != nil }
  }

  private func facts(_ nodeID: String, _ options: ZDCFetchOptions.Values) -> Facts {
    let facts = disk.lookUp { transaction -> Facts? in
      guard let row = try transaction.nodes.node(uuid: nodeID) else { return nil }
      let marks = try transaction.downloadMarks.components(node: row.id)
      return Facts(
        isMarked: options.downloadIfMarkedAsNeedsDownload && marks & ZDCNodeComponents.thumbnail.rawValue != 0,
        eTag: row.content?.content.eTag, hasThumbnail: row.content.map { $0.secrets.sizes.thumbnail > 0 } ?? false)
    }
    return facts.flatMap { $0 } ?? Facts()
  }

  /// Where a thumbnail comes from, after memory.
  enum Source: Sendable {
    /// The image as it came is in memory, the variant is not.
    case memory(Image)
    /// A file, of which the download, if any, brings a newer one.
    case disk(ZDCCryptoFile, downloads: Bool)
    case network
  }

  // MARK: Fetching

  func fetch(
    _ node: ZDCNode, _ request: ImageRequest<Image>, _ preFetch: (Image?, Bool) -> Void,
    _ deliver: ImageDelivery<Image>
  ) -> ZDCDownloadTicket? {
    var known = request.isKept ? thumbnails.image(.init(owner: node.uuid, processingID: request.processingID)) : nil
    if case .some(.some(let image)) = known, !request.options.downloadIfMarkedAsNeedsDownload {
      preFetch(image, false)
      return nil
    }
    let facts = facts(node.uuid, request.options)
    // There was none, and a version has come in that has one.
    if case .some(.none) = known, facts.hasThumbnail { known = nil }
    let read = thumbnails.beginRead(node.uuid)
    guard let source = source(node, facts, known, read) else {
      thumbnails.endRead(read)
      preFetch(known ?? nil, false)
      return nil
    }
    preFetch(known ?? nil, true)
    return start(Fetch(node: node, facts: facts, request: request, source: source, read: read, deliver: deliver))
  }

  /// - Returns: nil if there is nothing to fetch.
  private func source(
    _ node: ZDCNode, _ facts: Facts, _ known: Image??, _ read: ImageMemoryCache<Image>.Read
  ) -> Source? {
    if known != nil { return facts.needsDownload ? .network : nil }
    if !facts.needsDownload, case .some(.some(let image)) = thumbnails.image(.init(owner: node.uuid)) {
      return .memory(image)
    }
    guard let export = disk.nodeThumbnail(node) else {
      return facts.needsDownload || facts.hasThumbnail ? .network : nil
    }
    if let file = export.cryptoFile { return .disk(file, downloads: facts.needsDownload) }
    // Known to have none, in the version that is in the cloud or in the app's newer one.
    let isCurrent = !facts.hasThumbnail || export.eTag == nil || export.eTag == facts.eTag
    guard isCurrent, !facts.needsDownload else { return .network }
    thumbnails.set(nil, .init(owner: node.uuid), cost: 0, of: read)
    return nil
  }

  struct Fetch: Sendable {
    let node: ZDCNode
    let facts: Facts
    let request: ImageRequest<Image>
    let source: Source
    let read: ImageMemoryCache<Image>.Read
    let deliver: ImageDelivery<Image>

    var downloads: Bool {
      switch source {
      case .memory: false
      case .disk(_, let downloads): downloads
      case .network: true
      }
    }
  }

  private func start(_ fetch: Fetch) -> ZDCDownloadTicket? {
    // Without a thumbnail in the cloud the answer is there already.
    let ticket = fetch.downloads && fetch.facts.hasThumbnail ? ZDCDownloadTicket() : nil
    let task = Task {
      await run(fetch, ticket)
      thumbnails.endRead(fetch.read)
    }
    ticket?.begin(task)
    return ticket
  }

  private func run(_ fetch: Fetch, _ ticket: ZDCDownloadTicket?) async {
    switch fetch.source {
    case .memory(let image): await fetch.deliver(variant(of: image, fetch))
    case .disk(let file, let downloads):
      if let image = opened(file, fetch.node) {
        thumbnails.set(image, .init(owner: fetch.node.uuid), cost: cost(image), of: fetch.read)
        await fetch.deliver(variant(of: image, fetch))
        if !downloads { return }
      } else if !downloads, !fetch.facts.hasThumbnail {
        return await fetch.deliver(nil, ZDCError(.objectNotDecodable))
      }
      await download(fetch, ticket)
    case .network: await download(fetch, ticket)
    }
  }

  /// nil if the file is not what it was, or no image: it is not kept then.
  private func opened(_ file: ZDCCryptoFile, _ node: ZDCNode) -> Image? {
    do {
      if let image = try decode(try ZDCFileConversion.decryptCryptoFile(intoMemory: file)) { return image }
    } catch { disk.report(error) }
    disk.forget(.thumbnail(node.uuid), file)
    return nil
  }

  private func variant(of image: Image, _ fetch: Fetch) -> Image? {
    guard let processing = fetch.request.processing else { return image }
    let variant = processing(image)
    if let id = fetch.request.processingID {
      thumbnails.set(
        variant, .init(owner: fetch.node.uuid, processingID: id), cost: variant.map(cost) ?? 0, of: fetch.read)
    }
    return variant
  }

  // MARK: Downloading

  private func download(_ fetch: Fetch, _ ticket: ZDCDownloadTicket?) async {
    do {
      let key = DownloadedThumbnail(
        node: fetch.node.uuid, eTag: fetch.facts.eTag, isMarked: fetch.facts.isMarked)
      let image = try await fetches.value(key) { try await self.downloadOnce(fetch.node, fetch.facts) }
      ticket?.interest.report(1, 1)
      if ticket?.isIgnored == true { return }
      guard let image else { return await fetch.deliver(nil) }
      // Its own read: that of this fetch ended when the disk manager took the new file.
      let read = thumbnails.beginRead(fetch.node.uuid)
      defer { thumbnails.endRead(read) }
      let current = Fetch(
        node: fetch.node, facts: fetch.facts, request: fetch.request, source: fetch.source, read: read,
        deliver: fetch.deliver)
      await fetch.deliver(variant(of: image, current))
    } catch {
      if ticket?.isIgnored == true { return }
      await fetch.deliver(nil, error)
    }
  }

  /// What all that wait for it share: the download, the file in the cache, the decoded image, the mark.
  private func downloadOnce(_ node: ZDCNode, _ facts: Facts) async throws -> Image? {
    if let known = foundMeanwhile(node, facts) { return known }
    let (info, _, thumbnail) = try await downloads.downloadNodeMeta(node, components: .thumbnail)
    let read = thumbnails.beginRead(node.uuid)
    defer { thumbnails.endRead(read) }
    var image: Image?
    if let thumbnail {
      guard let decoded = try decode(thumbnail) else { throw ZDCError(.objectNotDecodable) }
      image = decoded
    }
    thumbnails.set(image, .init(owner: node.uuid), cost: image.map(cost) ?? 0, of: read)
    if facts.isMarked { try await unmark(node, info.eTag) }
    return image
  }

  /// What somebody else's download has brought between this request's look and now.
  private func foundMeanwhile(_ node: ZDCNode, _ facts: Facts) -> Image? {
    if facts.isMarked, self.facts(node.uuid, .init()).isMarked { return nil }
    guard case .some(.some(let image)) = thumbnails.image(.init(owner: node.uuid)) else { return nil }
    return image
  }

  /// Unless the node has a newer version by now.
  private func unmark(_ node: ZDCNode, _ eTag: String) async throws {
    let uuid = node.uuid
    try await database.write { transaction in
      guard let row = try transaction.nodes.node(uuid: uuid), row.content?.content.eTag == eTag else { return }
      let marks = transaction.downloadMarks
      let rest = try marks.components(node: row.id) & ~ZDCNodeComponents.thumbnail.rawValue
      try marks.set(rest, node: row.id)
    }
  }
}
