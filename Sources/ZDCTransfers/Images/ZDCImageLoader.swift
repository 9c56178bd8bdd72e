package import Foundation
package import ZDCClientStore
internal import ZDCSupport

/// Shows thumbnails as fast as they can be had: from memory, from disk, from the server (seed 002).
///
/// ``ZDCImageManager`` is the one for the platform's images.
///
/// ```swift
/// zdc.imageManager?.fetchNodeThumbnail(node) { image, willFetch in
///   cell.thumbnail.image = image ?? placeholder    // before the call returns
/// } postFetch: { image, error in
///   cell.thumbnail.image = image ?? placeholder    // later, if willFetch was true
/// }
/// ```
///
/// - `preFetch` is called once, before the call returns, with what is in memory. If `willFetch` is false, `postFetch`
///   is never called.
/// - `postFetch` is called with the image from disk or from the server, nil if there is none. An image that the node
///   no longer has, or whose node is marked as needing a download of its thumbnail, is shown first and then replaced:
///   one from memory comes with `preFetch`, one from disk with a first call of `postFetch`, the new one with the last.
///   A change of the data alone does not make a thumbnail outdated.
///
/// Any number of requests for one thumbnail make one download. What was downloaded is cached in the disk manager. That
/// there is none is remembered like an image.
///
/// May be used on any thread. Asking takes a look at two rows of the database at most; nothing is decoded before it
/// returns.
public final class ZDCImageLoader<Image: Sendable>: Sendable {
  /// Makes a variant of an image, off the main thread: scaled, rounded. Nil for none.
  public typealias Processing = @Sendable (Image) -> Image?

  static var defaultCostLimit: Int { 5 << 20 }

  package let disk: ZDCDiskManager
  package let downloads: ZDCDownloadManager
  package let database: ZDCDatabaseConnection
  package let decode: @Sendable (Data) throws -> Image?
  package let cost: @Sendable (Image) -> Int
  package let thumbnails: ImageMemoryCache<Image>
  package let avatars: ImageMemoryCache<Image>
  let fetches = SharedWork<DownloadedThumbnail, ImageMemoryCache<Image>.Known>()
  private let listener: Int

  /// Which thumbnail a download brings.
  struct DownloadedThumbnail: Hashable, Sendable {
    package var node: String
    package var eTag: String?
    /// Whether the mark is to go afterwards.
    var isMarked: Bool
  }

  package init(
    disk: ZDCDiskManager, downloads: ZDCDownloadManager, database: ZDCDatabaseConnection, costLimit: Int,
    cost: @escaping @Sendable (Image) -> Int, decode: @escaping @Sendable (Data) throws -> Image?
  ) {
    self.disk = disk
    self.downloads = downloads
    self.database = database
    self.cost = cost
    self.decode = decode
    let (thumbnails, avatars) = (
      ImageMemoryCache<Image>(costLimit: costLimit), ImageMemoryCache<Image>(costLimit: costLimit)
    )
    self.thumbnails = thumbnails
    self.avatars = avatars
    // Before the import that changed it returns: nobody sees the old one afterwards.
    listener = disk.disk.listen { changes in
      if !changes.changedNodeThumbnails.isEmpty { thumbnails.flush(changes.changedNodeThumbnails) }
      if !changes.changedUsersIDs.isEmpty { avatars.flush(changes.changedUsersIDs) }
    }
  }

  deinit {
    disk.disk.endListening(listener)
  }

  // MARK: Memory

  /// What thumbnails in memory may cost together: 5 MiB at first, for platform images counted in bytes.
  public var nodeThumbnailsCacheCostLimit: Int {
    get { thumbnails.costLimit }
    set { thumbnails.costLimit = newValue }
  }

  /// The same for avatars.
  public var userAvatarsCacheCostLimit: Int {
    get { avatars.costLimit }
    set { avatars.costLimit = newValue }
  }

  /// Drops what is in memory of one node, variants too.
  public func flushNodeThumbnailCache(_ nodeID: String) { thumbnails.flush([nodeID]) }

  /// Drops one variant of all nodes.
  public func flushNodeThumbnailCache(withProcessingID processingID: String) {
    thumbnails.flush(processingID: processingID)
  }

  public func flushUserAvatarsCache(_ userID: String) { avatars.flush([userID]) }

  public func flushUserAvatarsCache(withProcessingID processingID: String) {
    avatars.flush(processingID: processingID)
  }
}
