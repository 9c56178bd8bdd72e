public import Foundation
package import ZDCClientStore

#if canImport(UIKit) && (os(iOS) || os(tvOS) || os(watchOS) || os(visionOS))
  public import UIKit

  /// The platform's image type.
  public typealias ZDCPlatformImage = UIImage
#elseif canImport(AppKit) && os(macOS)
  public import AppKit

  /// The platform's image type.
  public typealias ZDCPlatformImage = NSImage
#else
  /// The image's bytes: this platform has no image type.
  public typealias ZDCPlatformImage = Data
#endif

/// The image manager for the platform's images. For other types:
/// ``ZeroDarkCloud/imageLoader(cacheCostLimit:cost:decode:)``.
public typealias ZDCImageManager = ZDCImageLoader<ZDCPlatformImage>

/// The original framework's name.
public typealias ThumbnailManager = ZDCImageManager

extension ZDCImageLoader where Image == ZDCPlatformImage {
  package static func platform(
    disk: ZDCDiskManager, downloads: ZDCDownloadManager, database: ZDCDatabaseConnection
  ) -> ZDCImageManager {
    #if canImport(UIKit) && (os(iOS) || os(tvOS) || os(watchOS) || os(visionOS))
      ZDCImageLoader(
        disk: disk, downloads: downloads, database: database, costLimit: ZDCImageManager.defaultCostLimit,
        cost: { Int($0.size.width * $0.scale * $0.size.height * $0.scale) * 4 }, decode: { UIImage(data: $0) })
    #elseif canImport(AppKit) && os(macOS)
      ZDCImageLoader(
        disk: disk, downloads: downloads, database: database, costLimit: ZDCImageManager.defaultCostLimit,
        cost: { Int($0.size.width * $0.size.height) * 4 }, decode: { NSImage(data: $0) })
    #else
      ZDCImageLoader(
        disk: disk, downloads: downloads, database: database, costLimit: ZDCImageManager.defaultCostLimit,
        cost: { $0.count }, decode: { $0 })
    #endif
  }
}
