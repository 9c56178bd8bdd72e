public import Foundation
package import ZDCCrypto
internal import ZDCProtocol

/// What a crypto file holds.
public enum ZDCCryptoFileFormat: Int, Sendable, Hashable, Codable {
  case unknown = 0
  /// Data that was sealed on this device, for this device, under a key of its own. No other sections.
  case cacheFile = 1
  /// The same bytes as in the cloud: header, metadata, thumbnail, data.
  case cloudFile = 2
}

/// A file of ciphertext with what is needed to open it (seeds 000, 002).
///
/// Both formats open through ``ZDCFileConversion``, and what comes out was verified. The file is not deleted with the
/// value: that is up to whoever asked for it, or to the ``ZDCDiskManager``, which has it deleted at the earliest when
/// the last copy of this value is gone.
public struct ZDCCryptoFile: Sendable {
  public let fileURL: URL
  public let fileFormat: ZDCCryptoFileFormat
  /// Keeps the disk manager from deleting the file; nil if it does not manage it.
  public let retainToken: ZDCFileRetainToken?
  package let reference: ContentReference
  /// Hashes of the file's leaves. Reading checks them again, so a file that changed on disk does not open.
  package let leaves: ContentLeaves

  package init(
    fileURL: URL, reference: ContentReference, leaves: ContentLeaves, fileFormat: ZDCCryptoFileFormat = .cloudFile,
    retainToken: ZDCFileRetainToken? = nil
  ) {
    self.fileURL = fileURL
    self.fileFormat = fileFormat
    self.retainToken = retainToken
    self.reference = reference
    self.leaves = leaves
  }

  /// Exact sizes of what is inside, in bytes.
  public var cleartextFileSize: UInt64 { reference.layout.sizes.data }
  public var metadataSize: UInt64 { UInt64(reference.layout.sizes.metadata) }
  public var thumbnailSize: UInt64 { UInt64(reference.layout.sizes.thumbnail) }
  /// The file's own size.
  public var encryptedFileSize: UInt64 { reference.layout.cipherLength }
}
