internal import Synchronization
package import ZDCProtocol

/// The uploads whose files are in use. Two requests that write the same part would mix their bytes, and a removal must
/// not delete the file of a part that is about to be acknowledged.
package final class BlobClaims: Sendable {
  private enum Work {
    case parts(Set<Int>)
    case removal
  }

  private let uploads = Mutex<[BlobID: Work]>([:])

  package init() {}

  /// Returns false while another request writes the part, or while the upload is being removed.
  package func begin(part: Int, of blob: BlobID) -> Bool {
    uploads.withLock { uploads in
      guard case .parts(var parts) = uploads[blob, default: .parts([])] else { return false }
      guard parts.insert(part).inserted else { return false }
      uploads[blob] = .parts(parts)
      return true
    }
  }

  package func end(part: Int, of blob: BlobID) {
    uploads.withLock { uploads in
      guard case .parts(var parts)? = uploads[blob] else { return }
      parts.remove(part)
      uploads[blob] = parts.isEmpty ? nil : .parts(parts)
    }
  }

  /// Returns false while a part is being written; the request that writes it removes the files when it ends.
  package func beginRemoval(of blob: BlobID) -> Bool {
    uploads.withLock { uploads in
      guard uploads[blob] == nil else { return false }
      uploads[blob] = .removal
      return true
    }
  }

  package func endRemoval(of blob: BlobID) { uploads.withLock { $0[blob] = nil } }
}
