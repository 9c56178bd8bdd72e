public import Foundation
package import ZDCCrypto
internal import ZDCProtocol

/// The format of a crypto file.
public enum ZDCCryptoFileFormat: Int, Sendable, Hashable, Codable {
  /// No file of this version has it.
  case unknown = 0
  /// Data sealed on this device, for this device, under a dedicated key. It has no other sections.
  case cacheFile = 1
  /// The same bytes as in the cloud: header, metadata, thumbnail, data.
  case cloudFile = 2
}

/// A file of ciphertext, with the secrets and hashes needed to open it.
///
/// Both formats open through ``ZDCFileConversion``, which verifies all output. Releasing this value does not delete the
/// file. Its requester deletes it, or the ``ZDCDiskManager`` does, but not before the last copy of this value is
/// released.
///
/// ```swift
/// let (_, file) = try await session.downloadManager.downloadNodeData(node)
/// print(file.cleartextFileSize, "bytes in", file.fileURL.lastPathComponent)
/// ```
public struct ZDCCryptoFile: Sendable {
  /// The location of the file, whose bytes are encrypted.
  public let fileURL: URL
  /// The format of the file.
  public let fileFormat: ZDCCryptoFileFormat
  /// The token that keeps the disk manager from deleting the file; nil if the disk manager does not manage it.
  public let retainToken: ZDCFileRetainToken?
  package let reference: ContentReference
  /// Hashes of the file's leaves. Every read checks them again, so a file that changed on disk does not open.
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

  /// Exact size of the data, in bytes.
  public var cleartextFileSize: UInt64 { reference.layout.sizes.data }
  /// Exact size of the metadata, in bytes.
  public var metadataSize: UInt64 { UInt64(reference.layout.sizes.metadata) }
  /// Exact size of the thumbnail, in bytes.
  public var thumbnailSize: UInt64 { UInt64(reference.layout.sizes.thumbnail) }
  /// Size of the file itself, in bytes.
  public var encryptedFileSize: UInt64 { reference.layout.cipherLength }
}
