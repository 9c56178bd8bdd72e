public import Foundation

// Limits count the sealed files, in bytes. They hold for this launch: set them after unlocking.

extension ZDCDiskManager {
  /// What cached contents may take: 25 MiB unless set. 0: none is cached.
  public var maxNodeDataCacheSize: UInt64 {
    get { maximum(.nodeData) }
    set { setMaximum(.nodeData, newValue) }
  }

  /// What cached thumbnails may take: 5 MiB unless set. 0: none is cached.
  public var maxNodeThumbnailsCacheSize: UInt64 {
    get { maximum(.nodeThumbnail) }
    set { setMaximum(.nodeThumbnail, newValue) }
  }

  /// What cached avatars may take: 5 MiB unless set. 0: none is cached.
  public var maxUserAvatarsCacheSize: UInt64 {
    get { maximum(.userAvatar) }
    set { setMaximum(.userAvatar, newValue) }
  }

  /// Seconds that contents may be in the cache, for imports that do not say. 0, as at first: for ever.
  public var defaultNodeDataCacheExpiration: TimeInterval {
    get { expiration(.nodeData) }
    set { setExpiration(.nodeData, newValue) }
  }

  /// The same for thumbnails.
  public var defaultNodeThumbnailCacheExpiration: TimeInterval {
    get { expiration(.nodeThumbnail) }
    set { setExpiration(.nodeThumbnail, newValue) }
  }

  /// The same for avatars; 7 days at first.
  public var defaultUserAvatarCacheExpiration: TimeInterval {
    get { expiration(.userAvatar) }
    set { setExpiration(.userAvatar, newValue) }
  }

  private func maximum(_ kind: DiskKind) -> UInt64 { disk.limits.maximum[kind] ?? 0 }

  /// What is too much by now goes soon after.
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
    // Above that it is for ever, to which a number of another kind would be a trap.
    guard seconds > 0, seconds < 1e12 else { return nil }
    return UInt64(seconds * 1_000)
  }

  // MARK: Storage sizes

  public func storageSizeForAllNodeData() -> UInt64 { storageSize(.nodeData, nil) }
  public func storageSizeForPersistentNodeData() -> UInt64 { storageSize(.nodeData, true) }
  public func storageSizeForCachedNodeData() -> UInt64 { storageSize(.nodeData, false) }
  public func storageSizeForAllNodeThumbnails() -> UInt64 { storageSize(.nodeThumbnail, nil) }
  public func storageSizeForPersistentNodeThumbnails() -> UInt64 { storageSize(.nodeThumbnail, true) }
  public func storageSizeForCachedNodeThumbnails() -> UInt64 { storageSize(.nodeThumbnail, false) }
  public func storageSizeForAllUserAvatars() -> UInt64 { storageSize(.userAvatar, nil) }
  public func storageSizeForPersistentUserAvatars() -> UInt64 { storageSize(.userAvatar, true) }
  public func storageSizeForCachedUserAvatars() -> UInt64 { storageSize(.userAvatar, false) }

  private func storageSize(_ kind: DiskKind, _ isPersistent: Bool?) -> UInt64 {
    lookUp { try $0.diskFiles.storageSize(kind, isPersistent: isPersistent) } ?? 0
  }
}
