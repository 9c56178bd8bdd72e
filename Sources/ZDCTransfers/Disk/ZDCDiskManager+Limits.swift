public import Foundation

// Limits count the bytes of the sealed files. They apply until the app ends: set them after unlocking.

extension ZDCDiskManager {
  /// Maximum total size of cached content in bytes: 25 MiB by default. 0 disables this cache.
  ///
  /// The least recently used files are evicted first. Persistent files do not count.
  ///
  /// ```swift
  /// session.diskManager.maxNodeDataCacheSize = 500 << 20  // 500 MiB
  /// ```
  public var maxNodeDataCacheSize: UInt64 {
    get { maximum(.nodeData) }
    set { setMaximum(.nodeData, newValue) }
  }

  /// Maximum total size of cached thumbnails in bytes: 5 MiB by default. 0 disables this cache.
  public var maxNodeThumbnailsCacheSize: UInt64 {
    get { maximum(.nodeThumbnail) }
    set { setMaximum(.nodeThumbnail, newValue) }
  }

  /// Maximum total size of cached avatars in bytes: 5 MiB by default. 0 disables this cache.
  public var maxUserAvatarsCacheSize: UInt64 {
    get { maximum(.userAvatar) }
    set { setMaximum(.userAvatar, newValue) }
  }

  /// Maximum time in the cache in seconds, for imports of content that set none. 0, the default, means no limit.
  public var defaultNodeDataCacheExpiration: TimeInterval {
    get { expiration(.nodeData) }
    set { setExpiration(.nodeData, newValue) }
  }

  /// Like ``defaultNodeDataCacheExpiration``, for thumbnails.
  public var defaultNodeThumbnailCacheExpiration: TimeInterval {
    get { expiration(.nodeThumbnail) }
    set { setExpiration(.nodeThumbnail, newValue) }
  }

  /// Like ``defaultNodeDataCacheExpiration``, for avatars; 7 days by default.
  public var defaultUserAvatarCacheExpiration: TimeInterval {
    get { expiration(.userAvatar) }
    set { setExpiration(.userAvatar, newValue) }
  }

  private func maximum(_ kind: DiskKind) -> UInt64 { disk.limits.maximum[kind] ?? 0 }

  /// Sets the limit. Files above it are removed soon after.
  private func setMaximum(_ kind: DiskKind, _ bytes: UInt64) {
    disk.setMaximum(kind, bytes)
    enqueue { try $0.trim() }
  }

  private func expiration(_ kind: DiskKind) -> TimeInterval {
    TimeInterval(disk.limits.lifetime[kind] ?? 0) / 1_000
  }

  private func setExpiration(_ kind: DiskKind, _ seconds: TimeInterval) {
    disk.setLifetime(kind, Self.milliseconds(seconds))
  }

  package static func milliseconds(_ seconds: TimeInterval) -> UInt64? {
    // Longer times count as no limit. A number out of range would trap in the conversion.
    guard seconds > 0, seconds < 1e12 else { return nil }
    return UInt64(seconds * 1_000)
  }

  // MARK: Storage sizes

  /// Returns the total size of stored content in bytes, as sealed files; 0 if the database cannot be read.
  ///
  /// ```swift
  /// let disk = session.diskManager
  /// let total = disk.storageSizeForAllNodeData() + disk.storageSizeForAllNodeThumbnails()
  /// ```
  public func storageSizeForAllNodeData() -> UInt64 { storageSize(.nodeData, nil) }
  /// Returns the size of content that is kept until the app deletes it, in bytes.
  public func storageSizeForPersistentNodeData() -> UInt64 { storageSize(.nodeData, true) }
  /// Returns the size of content in the cache, in bytes.
  ///
  /// ```swift
  /// let bytes = session.diskManager.storageSizeForCachedNodeData()
  /// show(["\(bytes >> 20) MiB"])
  /// ```
  public func storageSizeForCachedNodeData() -> UInt64 { storageSize(.nodeData, false) }
  /// Returns the total size of stored thumbnails in bytes, as sealed files; 0 if the database cannot be read.
  public func storageSizeForAllNodeThumbnails() -> UInt64 { storageSize(.nodeThumbnail, nil) }
  /// Returns the size of thumbnails that are kept until the app deletes them, in bytes.
  public func storageSizeForPersistentNodeThumbnails() -> UInt64 { storageSize(.nodeThumbnail, true) }
  /// Returns the size of thumbnails in the cache, in bytes.
  public func storageSizeForCachedNodeThumbnails() -> UInt64 { storageSize(.nodeThumbnail, false) }
  /// Returns the total size of stored avatars in bytes, as sealed files; 0 if the database cannot be read.
  public func storageSizeForAllUserAvatars() -> UInt64 { storageSize(.userAvatar, nil) }
  /// Returns the size of avatars that are kept until the app deletes them, in bytes.
  public func storageSizeForPersistentUserAvatars() -> UInt64 { storageSize(.userAvatar, true) }
  /// Returns the size of avatars in the cache, in bytes.
  public func storageSizeForCachedUserAvatars() -> UInt64 { storageSize(.userAvatar, false) }

  private func storageSize(_ kind: DiskKind, _ isPersistent: Bool?) -> UInt64 {
    lookUp { try $0.diskFiles.storageSize(kind, isPersistent: isPersistent) } ?? 0
  }
}
