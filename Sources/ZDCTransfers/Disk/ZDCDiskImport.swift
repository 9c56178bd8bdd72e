public import Foundation
internal import Synchronization

/// What is to be stored, and how (reference: the original's `ZDCDiskImport`).
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

  /// It is known that there is nothing, such as no thumbnail: nobody needs to ask again.
  public init() {
    source = .nothing
  }

  /// Sealed on the way to the disk, under a key of its own.
  public init(cleartextData: Data) {
    source = .cleartext(.memory([UInt8](cleartextData)))
  }

  /// A file in the clear, of any size. It is read in slices, and left as it is.
  public init(cleartextFileURL: URL) {
    source = .cleartextFile(cleartextFileURL)
  }

  /// A sealed file, for example a download. It is linked, or else copied, and left where it is.
  public init(cryptoFile: ZDCCryptoFile) {
    source = .cryptoFile(cryptoFile)
  }

  package var values: Values { state.withLock { $0 } }

  /// Whether there is nothing to store but the knowledge of it.
  public var isNilPlaceholder: Bool {
    if case .nothing = source { true } else { false }
  }

  /// Never evicted, never expired, not counted in the cache's size.
  public var storePersistently: Bool {
    get { state.withLock { $0.storePersistently } }
    set { state.withLock { $0.storePersistently = newValue } }
  }

  /// What is stored persistently moves into the cache in the transaction in which the last queued upload of the node's
  /// data is done, or given up in favour of the cloud's version.
  public var migrateToCacheAfterUpload: Bool {
    get { state.withLock { $0.migrateToCacheAfterUpload } }
    set { state.withLock { $0.migrateToCacheAfterUpload = newValue } }
  }

  /// It goes in that transaction instead. Until then it is stored persistently.
  ///
  /// Queue the upload first, or in the same transaction before the import: where none of the node's data is queued, and
  /// with avatars, this has no effect, and the file goes into the cache unless ``storePersistently`` is set.
  public var deleteAfterUpload: Bool {
    get { state.withLock { $0.deleteAfterUpload } }
    set { state.withLock { $0.deleteAfterUpload = newValue } }
  }

  /// Which version this is, for the app to compare; comes back with the export.
  public var eTag: String? {
    get { state.withLock { $0.eTag } }
    set { state.withLock { $0.eTag = newValue } }
  }

  /// Seconds in the cache, from when it came into it. 0: the disk manager's default. Less: for ever.
  public var expiration: TimeInterval {
    get { state.withLock { $0.expiration } }
    set { state.withLock { $0.expiration = newValue } }
  }
}

/// What the disk manager has.
public struct ZDCDiskExport: Sendable {
  /// The file. While this value or a copy of its ``ZDCCryptoFile/retainToken`` lives, it is not deleted. Nil for a
  /// placeholder.
  public let cryptoFile: ZDCCryptoFile?
  /// Whether it is known that there is nothing.
  public var isNilPlaceholder: Bool { cryptoFile == nil }
  public let isStoredPersistently: Bool
  /// As given to the import; for downloads the version in the cloud, to compare with `ZDCNode.eTag_data`.
  public let eTag: String?
  /// Seconds that it may be in the cache; 0 for ever.
  public let expiration: TimeInterval
  /// The version of the node's content in the cloud when this was stored.
  package let contentETag: String?
}
