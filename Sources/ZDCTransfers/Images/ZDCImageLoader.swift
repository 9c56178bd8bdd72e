package import Foundation
package import ZDCClientStore
internal import ZDCSupport

/// Delivers thumbnails as fast as possible: from memory, from disk, from the server.
///
/// ``ZDCImageManager`` is the loader for the platform's images.
///
/// ```swift
/// zdc.imageManager?.fetchNodeThumbnail(node) { image, willFetch in
///   cell.thumbnail.image = image ?? placeholder    // before the call returns
/// } postFetch: { image, error in
///   cell.thumbnail.image = image ?? placeholder    // later, if willFetch was true
/// }
/// ```
///
/// - `preFetch` is called once, before the call returns, with the image in memory. If `willFetch` is false, `postFetch`
///   is never called.
/// - `postFetch` is called with the image from disk or from the server, nil if there is none. An image is outdated if
///   the node no longer has it, or if the node is marked as needing a download of its thumbnail. An outdated image is
///   shown first and then replaced. One from memory is passed to `preFetch`, one from disk to a first call of
///   `postFetch`. The new image is passed to the last call. A change of the data alone does not make a thumbnail
///   outdated.
///
/// Any number of requests for one thumbnail share one download. Downloads are cached in the disk manager. The absence
/// of a thumbnail is remembered like an image.
///
/// May be used on any thread. A request reads at most two rows of the database; nothing is decoded before it returns.
public final class ZDCImageLoader<Image: Sendable>: Sendable {
  /// Makes a variant of an image, such as a scaled or rounded one, off the main thread. Returns nil if there is none.
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

  /// The thumbnail that a download fetches.
  struct DownloadedThumbnail: Hashable, Sendable {
    package var node: String
    package var eTag: String?
    /// Whether the mark is removed afterwards.
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
    // Called before the import that changed the image returns, so that no caller sees the old one afterwards.
    listener = disk.disk.listen { changes in
      if !changes.changedNodeThumbnails.isEmpty { thumbnails.flush(changes.changedNodeThumbnails) }
      if !changes.changedUsersIDs.isEmpty { avatars.flush(changes.changedUsersIDs) }
    }
  }

  deinit {
    disk.disk.endListening(listener)
  }

  // MARK: Memory

  /// Maximum total cost of thumbnails in memory: 5 MiB by default. Platform images count in bytes.
  public var nodeThumbnailsCacheCostLimit: Int {
    get { thumbnails.costLimit }
    set { thumbnails.costLimit = newValue }
  }

  /// Like ``nodeThumbnailsCacheCostLimit``, for avatars.
  public var userAvatarsCacheCostLimit: Int {
    get { avatars.costLimit }
    set { avatars.costLimit = newValue }
  }

  /// Drops the images of one node from memory, including variants.
  public func flushNodeThumbnailCache(_ nodeID: String) { thumbnails.flush([nodeID]) }

  /// Drops one variant of all nodes' thumbnails from memory.
  ///
  /// ```swift
  /// session.imageManager.flushNodeThumbnailCache(withProcessingID: "round")  // the radius has changed
  /// ```
  public func flushNodeThumbnailCache(withProcessingID processingID: String) {
    thumbnails.flush(processingID: processingID)
  }

  /// Removes all decoded avatars of a user from memory. Files in the disk manager stay.
  public func flushUserAvatarsCache(_ userID: String) { avatars.flush([userID]) }

  /// Removes the decoded avatars of all users that were processed under that ID from memory.
  public func flushUserAvatarsCache(withProcessingID processingID: String) {
    avatars.flush(processingID: processingID)
  }
}
