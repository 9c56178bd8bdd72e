public import Foundation
internal import Synchronization

/// A file to store, and how to store it.
///
/// Read once, by the import; later changes have no effect on it.
///
/// ```swift
/// let photo = ZDCDiskImport(cleartextFileURL: url)
/// photo.storePersistently = true
/// photo.migrateToCacheAfterUpload = true
/// try zdc.diskManager?.importNodeData(photo, for: node)
/// ```
public final class ZDCDiskImport: Sendable {
  package enum Source: Sendable {
    case nothing
    case cleartext(ContentSource)
    case cleartextFile(URL)
    case cryptoFile(ZDCCryptoFile)
  }

  package struct Values: Sendable {
    package var storePersistently = false
    package var migrateToCacheAfterUpload = false
    package var deleteAfterUpload = false
    package var eTag: String?
    package var expiration: TimeInterval = 0
  }

  package let source: Source
  private let state = Mutex(Values())

  /// Creates a placeholder. It records that there is no file, such as no thumbnail, so that it is not requested again.
  ///
  /// ```swift
  /// try session.diskManager.importNodeThumbnail(ZDCDiskImport(), for: node)  // it has none: do not ask the server
  /// ```
  public init() {
    source = .nothing
  }

  /// Creates an import of data in memory. It is sealed on the way to the disk, under a dedicated key.
  ///
  /// ```swift
  /// try session.diskManager.importNodeThumbnail(ZDCDiskImport(cleartextData: jpeg), for: node)
  /// ```
  public init(cleartextData: Data) {
    source = .cleartext(.memory([UInt8](cleartextData)))
  }

  /// Creates an import of a cleartext file of any size. The file is read in slices and left unchanged.
  ///
  /// ```swift
  /// let photo = ZDCDiskImport(cleartextFileURL: imageURL)
  /// photo.storePersistently = true
  /// try session.diskManager.importNodeData(photo, for: node)
  /// ```
  public init(cleartextFileURL: URL) {
    source = .cleartextFile(cleartextFileURL)
  }

  /// Creates an import of a sealed file, for example a download. The file is linked, or else copied, and left in place.
  ///
  /// ```swift
  /// let (info, file) = try await session.downloadManager.downloadNodeData(node)
  /// let download = ZDCDiskImport(cryptoFile: file)
  /// download.eTag = info.eTag
  /// try session.diskManager.importNodeData(download, for: node)
  /// ```
  public init(cryptoFile: ZDCCryptoFile) {
    source = .cryptoFile(cryptoFile)
  }

  package var values: Values { state.withLock { $0 } }

  /// Whether this is a placeholder, which only records that there is no file.
  public var isNilPlaceholder: Bool {
    if case .nothing = source { true } else { false }
  }

  /// Whether the file is never evicted, never expires, and is not counted in the cache's size.
  ///
  /// ```swift
  /// let photo = ZDCDiskImport(cleartextFileURL: imageURL)
  /// photo.storePersistently = true  // "keep offline"
  /// try session.diskManager.importNodeData(photo, for: node)
  /// ```
  public var storePersistently: Bool {
    get { state.withLock { $0.storePersistently } }
    set { state.withLock { $0.storePersistently = newValue } }
  }

  /// Whether a persistently stored file moves into the cache after its upload. It moves in the transaction in which the
  /// last queued upload of the node's data finishes, or is abandoned in favor of the cloud's version.
  ///
  /// ```swift
  /// let photo = ZDCDiskImport(cleartextFileURL: imageURL)
  /// photo.migrateToCacheAfterUpload = true  // keep it until it is sent, then as long as there is room
  /// try session.diskManager.importNodeData(photo, for: node)
  /// ```
  public var migrateToCacheAfterUpload: Bool {
    get { state.withLock { $0.migrateToCacheAfterUpload } }
    set { state.withLock { $0.migrateToCacheAfterUpload = newValue } }
  }

  /// Whether the file is deleted after its upload, in the transaction that ``migrateToCacheAfterUpload`` describes.
  /// Until then it is stored persistently.
  ///
  /// Queue the upload first, or in the same transaction before the import. Without a queued upload of the node's data,
  /// and with avatars, this has no effect: the file goes into the cache unless ``storePersistently`` is set.
  ///
  /// ```swift
  /// let photo = ZDCDiskImport(cleartextFileURL: url)
  /// photo.deleteAfterUpload = true  // this device needs it for the upload only
  /// try session.diskManager.importNodeData(photo, for: node)
  /// ```
  public var deleteAfterUpload: Bool {
    get { state.withLock { $0.deleteAfterUpload } }
    set { state.withLock { $0.deleteAfterUpload = newValue } }
  }

  /// The version of the file, for the app to compare. The export returns it.
  public var eTag: String? {
    get { state.withLock { $0.eTag } }
    set { state.withLock { $0.eTag = newValue } }
  }

  /// Maximum time in the cache in seconds, from the moment the file enters it. 0 means the disk manager's default, and
  /// a negative number means no limit.
  ///
  /// ```swift
  /// let preview = ZDCDiskImport(cleartextData: jpeg)
  /// preview.expiration = 7 * 24 * 3_600
  /// try session.diskManager.importNodeThumbnail(preview, for: node)
  /// ```
  public var expiration: TimeInterval {
    get { state.withLock { $0.expiration } }
    set { state.withLock { $0.expiration = newValue } }
  }
}

/// An entry of the disk manager.
///
/// ```swift
/// guard let export = session.diskManager.nodeData(node) else { return }
/// let isCurrent = export.eTag == node.eTag_data  // for content that was downloaded
/// ```
public struct ZDCDiskExport: Sendable {
  /// The file; nil for a placeholder. It is not deleted while this value or a copy of its ``ZDCCryptoFile/retainToken``
  /// lives.
  public let cryptoFile: ZDCCryptoFile?
  /// Whether it is known that there is no file.
  public var isNilPlaceholder: Bool { cryptoFile == nil }
  /// Whether the file is kept until the app deletes it, rather than in a cache.
  public let isStoredPersistently: Bool
  /// The import's eTag. For downloads, the version in the cloud, to compare with `ZDCNode.eTag_data`.
  public let eTag: String?
  /// Maximum time in the cache in seconds; 0 for no limit.
  public let expiration: TimeInterval
  /// The version of the node's content in the cloud when this was stored.
  package let contentETag: String?
}
