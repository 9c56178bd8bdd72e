public import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

extension ZDCImageLoader {
  /// Fetches a node's thumbnail for the user interface.
  ///
  /// Keep the ticket, and call `ignore()` or `cancel()` when the view shows another node:
  ///
  /// ```swift
  /// let ticket = session.imageManager.fetchNodeThumbnail(node) { image, willFetch in
  ///   cell.thumbnail.image = image ?? placeholder
  /// } postFetch: { image, error in
  ///   cell.thumbnail.image = image ?? placeholder
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - node: the node whose thumbnail is fetched.
  ///   - options: nil for the defaults.
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

  /// The same, for callers off the main thread. `postFetch` is called on `completionQueue`, or on the main queue if
  /// that is nil.
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
  /// ```swift
  /// session.imageManager.fetchNodeThumbnail(node, processingID: "round") { image in
  ///   rounded(image)
  /// } preFetch: { image, willFetch in
  ///   cell.thumbnail.image = image ?? placeholder
  /// } postFetch: { image, error in
  ///   cell.thumbnail.image = image ?? placeholder
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - node: the node whose thumbnail is fetched.
  ///   - options: nil for the defaults.
  ///   - processingID: identifies the variant in memory for later fetches; if nil, the variant is made each time.
  ///   - processingBlock: makes the variant.
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

  /// The same, for callers off the main thread.
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

  // MARK: Known state

  /// The facts that this device has about a node's thumbnail without reading it.
  package struct Facts: Sendable {
    var isMarked = false
    /// The version in the cloud; nil if there is none.
    package var eTag: String?
    /// The tag of that version's thumbnail; nil if it has none.
    package var tag: String?

    var hasThumbnail: Bool { tag != nil }
    /// Whether the thumbnail must be downloaded. A mark without content in the cloud does not count.
    package var needsDownload: Bool { isMarked && eTag != nil }
  }

  private func facts(_ nodeID: String, _ options: ZDCFetchOptions.Values) -> Facts {
    let facts = disk.lookUp { transaction -> Facts? in
      guard let row = try transaction.nodes.node(uuid: nodeID) else { return nil }
      let marks = try transaction.downloadMarks.components(node: row.id)
      return Facts(
        isMarked: options.downloadIfMarkedAsNeedsDownload && marks & ZDCNodeComponents.thumbnail.rawValue != 0,
        eTag: row.content?.content.eTag,
        tag: row.content.flatMap { $0.secrets.sizes.thumbnail > 0 ? $0.secrets.thumbnailTag.text : nil })
    }
    return facts.flatMap { $0 } ?? Facts()
  }

  /// Whether an image of that version is current: that of the version in the cloud, or of the app's newer one.
  private func isCurrent(_ version: ThumbnailVersion?, _ facts: Facts, _ nodeID: String) -> Bool {
    guard let eTag = facts.eTag else { return true }
    return version?.eTag == eTag || version?.tag == facts.tag || isEdited(nodeID)
  }

  /// Whether the app has queued newer content.
  private func isEdited(_ nodeID: String) -> Bool {
    let isEdited = disk.lookUp { transaction in
      guard let row = try transaction.nodes.node(uuid: nodeID) else { return false }
      return try transaction.operations.operations(node: row.id).contains { $0.kind == .putData }
    }
    return isEdited ?? false
  }

  /// The source of a thumbnail that is not ready in memory.
  package enum Source: Sendable {
    /// The original image is in memory, the variant is not.
    case memory(ImageMemoryCache<Image>.Known)
    /// A file, and the eTag of the content in the cloud when the file was stored.
    case disk(ZDCCryptoFile, eTag: String?)
    case network
  }

  // MARK: Fetching

  package func fetch(
    _ node: ZDCNode, _ request: ImageRequest<Image>, _ preFetch: (Image?, Bool) -> Void,
    _ deliver: ImageDelivery<Image>
  ) -> ZDCDownloadTicket? {
    var known = request.isKept ? thumbnails.known(.init(owner: node.uuid, processingID: request.processingID)) : nil
    if let image = known?.image, !request.options.downloadIfMarkedAsNeedsDownload {
      preFetch(image, false)
      return nil
    }
    let facts = facts(node.uuid, request.options)
    let isOutdated = known.map { !isCurrent($0.version, facts, node.uuid) } ?? false
    // There was none, but a version that has one has arrived.
    if isOutdated, known?.image == nil { known = nil }
    let read = thumbnails.beginRead(node.uuid)
    let source =
      known == nil ? source(node, facts, read) : isOutdated || facts.needsDownload ? Source.network : nil
    guard let source else {
      thumbnails.endRead(read)
      preFetch(known?.image, false)
      return nil
    }
    preFetch(known?.image, true)
    return start(
      Fetch(
        node: node, facts: facts, request: request, source: source, read: read, deliver: deliver,
        transactionEnd: TransactionEnd.ofCurrent(database.context)))
  }

  /// Returns the source of an image that is not in memory.
  ///
  /// - Returns: nil if there is nothing to fetch.
  private func source(_ node: ZDCNode, _ facts: Facts, _ read: ImageMemoryCache<Image>.Read) -> Source? {
    if !facts.needsDownload, let original = thumbnails.known(.init(owner: node.uuid)), original.image != nil,
      isCurrent(original.version, facts, node.uuid)
    {
      return .memory(original)
    }
    guard let export = disk.nodeThumbnail(node) else {
      return facts.needsDownload || facts.hasThumbnail ? .network : nil
    }
    if let file = export.cryptoFile { return .disk(file, eTag: export.contentETag) }
    let version = ThumbnailVersion(eTag: export.eTag ?? export.contentETag)
    guard !facts.needsDownload, isCurrent(version, facts, node.uuid) else { return .network }
    thumbnails.set(nil, .init(owner: node.uuid), cost: 0, version: version, of: read)
    return nil
  }

  package struct Fetch: Sendable {
    package let node: ZDCNode
    package let facts: Facts
    package let request: ImageRequest<Image>
    package let source: Source
    package let read: ImageMemoryCache<Image>.Read
    package let deliver: ImageDelivery<Image>
    /// The end of the transaction block in which this was requested.
    var transactionEnd: TransactionEnd?

    package var downloads: Bool {
      switch source {
      case .memory: false
      case .disk(_, let eTag): facts.needsDownload || mayReplace && eTag != facts.eTag
      case .network: true
      }
    }

    /// Whether a stored thumbnail may be downloaded again.
    var mayReplace: Bool { facts.eTag != nil && request.options.downloadIfMarkedAsNeedsDownload }
  }

  private func start(_ fetch: Fetch) -> ZDCDownloadTicket? {
    // Without a thumbnail in the cloud, the answer is already known.
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
    case .memory(let known): await fetch.deliver(known.image.flatMap { variant(of: $0, known.version, fetch) })
    case .disk(let file, let eTag):
      if let (image, version) = opened(file, eTag, fetch.node) {
        thumbnails.set(image, .init(owner: fetch.node.uuid), cost: cost(image), version: version, of: fetch.read)
        await fetch.deliver(variant(of: image, version, fetch))
        let isOutdated = fetch.mayReplace && !isCurrent(version, fetch.facts, fetch.node.uuid)
        if !fetch.facts.needsDownload, !isOutdated { return }
      } else if !fetch.downloads, !fetch.facts.hasThumbnail {
        return await fetch.deliver(nil, ZDCError(.objectNotDecodable))
      }
      await download(fetch, ticket)
    case .network: await download(fetch, ticket)
    }
  }

  /// Opens and decodes the file. Returns nil, and removes the entry, if the file has changed or is no image.
  private func opened(_ file: ZDCCryptoFile, _ eTag: String?, _ node: ZDCNode) -> (Image, ThumbnailVersion)? {
    do {
      let bytes = try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
      let version = ThumbnailVersion(eTag: eTag, tag: ContentHeader.tag(ofThumbnail: bytes).text)
      if let image = try decode(bytes) { return (image, version) }
    } catch { disk.report(error) }
    disk.forget(.thumbnail(node.uuid), file)
    return nil
  }

  private func variant(of image: Image, _ version: ThumbnailVersion?, _ fetch: Fetch) -> Image? {
    guard let processing = fetch.request.processing else { return image }
    let variant = processing(image)
    if let id = fetch.request.processingID {
      thumbnails.set(
        variant, .init(owner: fetch.node.uuid, processingID: id), cost: variant.map(cost) ?? 0, version: version,
        of: fetch.read)
    }
    return variant
  }

  // MARK: Downloading

  private func download(_ fetch: Fetch, _ ticket: ZDCDownloadTicket?) async {
    do {
      try await fetch.transactionEnd?.committed()
      let key = DownloadedThumbnail(
        node: fetch.node.uuid, eTag: fetch.facts.eTag, isMarked: fetch.facts.isMarked)
      let known = try await fetches.value(key) { try await self.downloadOnce(fetch.node, fetch.facts) }
      ticket?.interest.report(1, 1)
      if ticket?.isIgnored == true { return }
      guard let image = known.image else { return await fetch.deliver(nil) }
      // A separate read: the one of this fetch ended when the disk manager stored the new file.
      let read = thumbnails.beginRead(fetch.node.uuid)
      defer { thumbnails.endRead(read) }
      let current = Fetch(
        node: fetch.node, facts: fetch.facts, request: fetch.request, source: fetch.source, read: read,
        deliver: fetch.deliver)
      await fetch.deliver(variant(of: image, known.version, current))
    } catch {
      if ticket?.isIgnored == true { return }
      await fetch.deliver(nil, error)
    }
  }

  /// Does the work that all waiting requests share: the download, the file in the cache, the decoded image, the mark.
  private func downloadOnce(_ node: ZDCNode, _ facts: Facts) async throws -> ImageMemoryCache<Image>.Known {
    if let known = foundInCache(node, facts) { return known }
    let (info, _, thumbnail) = try await downloads.downloadNodeMeta(node, components: .thumbnail)
    let read = thumbnails.beginRead(node.uuid)
    defer { thumbnails.endRead(read) }
    var image: Image?
    if let thumbnail {
      guard let decoded = try decode(thumbnail) else { throw ZDCError(.objectNotDecodable) }
      image = decoded
    }
    let version = ThumbnailVersion(eTag: info.eTag, tag: info.thumbnailTag)
    thumbnails.set(image, .init(owner: node.uuid), cost: image.map(cost) ?? 0, version: version, of: read)
    if facts.isMarked { try await unmark(node, info.eTag) }
    return .init(image: image, version: version)
  }

  /// Returns the image if another request has downloaded it since this one looked.
  private func foundInCache(_ node: ZDCNode, _ facts: Facts) -> ImageMemoryCache<Image>.Known? {
    if facts.isMarked, self.facts(node.uuid, .init()).isMarked { return nil }
    guard let known = thumbnails.known(.init(owner: node.uuid)), known.image != nil,
      isCurrent(known.version, facts, node.uuid)
    else { return nil }
    return known
  }

  /// Removes the mark, unless the node has a newer version by now.
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
