internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

/// The content for one upload, sealed.
enum SuppliedContent: Sendable {
  /// Rides along with the commit.
  case inline(SealedContent)
  /// Already on the server; `fields` has its root and length.
  case uploaded(NodeRecord.Content, ContentSecrets)

  func fields(dataVersion: UInt64) -> NodeRecord.Content {
    switch self {
    case .inline(let sealed): return sealed.content(dataVersion: dataVersion)
    case .uploaded(var content, _):
      content.dataVersion = dataVersion
      return content
    }
  }

  var secrets: ContentSecrets {
    switch self {
    case .inline(let sealed): sealed.secrets
    case .uploaded(_, let secrets): secrets
    }
  }

  var inlineBytes: [UInt8]? {
    if case .inline(let sealed) = self { sealed.bytes } else { nil }
  }
}

/// Content that is ready to be committed.
struct ReadyContent: Sendable {
  var content: SuppliedContent
  /// The operations that it satisfies: those that were queued when the app was asked.
  var covers: [Int64]
  /// The version that the edit was based on then. If that changes, the app has merged, and this is not its word any more.
  var baseETag: String?

  init(content: SuppliedContent, answer: ContentAnswer) {
    self.content = content
    covers = answer.covers
    baseETag = answer.baseETag
  }
}

/// A content that is waited for, sealed or sent on a task of its own.
struct Upload: Sendable {
  var id: UUID
  var task: Task<Void, Never>
  var baseETag: String?
}
