public import Foundation
package import ZDCCrypto
internal import ZDCProtocol

/// A file of ciphertext with what is needed to open it (seeds 000, 002).
///
/// The file holds the same bytes as the cloud, and they were verified before this value was made. It opens through
/// ``ZDCFileConversion``. The file is not deleted with the value: that is up to whoever asked for it.
public struct ZDCCryptoFile: Sendable {
  public let fileURL: URL
  package let reference: ContentReference
  /// Hashes of the file's leaves. Reading checks them again, so a file that changed on disk does not open.
  package let leaves: ContentLeaves

  package init(fileURL: URL, reference: ContentReference, leaves: ContentLeaves) {
    self.fileURL = fileURL
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
