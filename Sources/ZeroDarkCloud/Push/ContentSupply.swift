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

/// What the app was asked for: the content of a node, as it was when these operations were queued.
struct ContentClaim: Sendable {
  /// The operations that it satisfies. Their numbers are never used again, unlike those of nodes.
  var covers: [Int64]
  /// The version that the edit was based on then. If that changes, the app has merged, and this is not its word any
  /// more.
  var baseETag: String?
  /// An upload is bound to it; a node that is kept after a remote delete gets another one.
  var nodeID: NodeID

  init(_ answer: ContentAnswer) {
    covers = answer.covers
    baseETag = answer.baseETag
    nodeID = answer.nodeID
  }

  /// Whether it is still what that operation wants to send.
  func holds(for operation: OperationRow) -> Bool {
    covers.contains(operation.id) && baseETag == operation.baseETag && nodeID == operation.nodeID
  }
}

/// Content that is ready to be committed.
struct ReadyContent: Sendable {
  var content: SuppliedContent
  var claim: ContentClaim

  init(content: SuppliedContent, answer: ContentAnswer) {
    self.content = content
    claim = ContentClaim(answer)
  }
}

/// A content that is waited for, sealed or sent on a task of its own.
struct Upload: Sendable {
  var id: UUID
  var task: Task<Void, Never>
  var claim: ContentClaim
  /// Whether the app has promised it and not answered yet.
  var isPromised: Bool
  private let answer: ContentAnswer

  init(id: UUID, task: Task<Void, Never>, answer: ContentAnswer, isPromised: Bool) {
    self.id = id
    self.task = task
    self.answer = answer
    self.isPromised = isPromised
    claim = ContentClaim(answer)
  }

  /// Whether it ends by itself: no promise is open that nobody here is working on.
  var endsByItself: Bool { !isPromised || !answer.isLeftToTheApp }

  /// The operations that it satisfies, as the progress manager knows them.
  var operations: [UploadProgress.Operation] { answer.uploads }
}
