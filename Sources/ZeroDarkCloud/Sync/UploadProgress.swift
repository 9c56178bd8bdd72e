internal import Foundation

/// Bytes sent of every upload that is under way, by node. Never runs backwards within one attempt.
final class UploadProgress: Sendable {
  struct Upload: Sendable, Hashable {
    var sent: UInt64
    var total: UInt64
  }

  private let uploads = Locked<[String: Upload]>([:])

  func reporter(forNode nodeUUID: String) -> @Sendable (UInt64, UInt64) -> Void {
    { [uploads] sent, total in
      uploads.withLock { $0[nodeUUID] = sent < total ? Upload(sent: sent, total: total) : nil }
    }
  }

  func upload(ofNode nodeUUID: String) -> Upload? {
    uploads.withLock { $0[nodeUUID] }
  }

  var all: [String: Upload] { uploads.withLock { $0 } }
}
