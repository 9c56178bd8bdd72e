package import Foundation
package import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol
package import ZDCTransfers

/// The content for one upload, sealed.
package enum SuppliedContent: Sendable {
  /// Rides along with the commit.
  case inline(SealedContent)
  /// Already on the server; `fields` has its root and length.
  case uploaded(NodeRecord.Content, ContentSecrets)

  package func fields(dataVersion: UInt64) -> NodeRecord.Content {
    switch self {
    case .inline(let sealed): return sealed.content(dataVersion: dataVersion)
    case .uploaded(var content, _):
      content.dataVersion = dataVersion
      return content
    }
  }

  package var secrets: ContentSecrets {
    switch self {
    case .inline(let sealed): sealed.secrets
    case .uploaded(_, let secrets): secrets
    }
  }

  package var inlineBytes: [UInt8]? {
    if case .inline(let sealed) = self { sealed.bytes } else { nil }
  }
}

/// What the app was asked for: the content of a node, as it was when these operations were queued.
package struct ContentClaim: Sendable {
  /// The operations that it satisfies. Their numbers are never used again, unlike those of nodes.
  package var covers: [Int64]
  /// The version that the edit was based on then. If that changes, the app has merged, and this is not its word any
  /// more.
  package var baseETag: String?
  /// An upload is bound to it; a node that is kept after a remote delete gets another one.
  package var nodeID: NodeID

  package init(_ answer: ContentAnswer) {
    covers = answer.covers
    baseETag = answer.baseETag
    nodeID = answer.nodeID
  }

  /// Whether it is still what that operation wants to send.
  package func holds(for operation: OperationRow) -> Bool {
    covers.contains(operation.id) && baseETag == operation.baseETag && nodeID == operation.nodeID
  }
}

/// Content that is ready to be committed.
package struct ReadyContent: Sendable {
  package var content: SuppliedContent
  package var claim: ContentClaim

  package init(content: SuppliedContent, answer: ContentAnswer) {
    self.content = content
    claim = ContentClaim(answer)
  }
}

/// A content that is waited for, sealed or sent on a task of its own.
package struct Upload: Sendable {
  package var id: UUID
  package var task: Task<Void, Never>
  package var claim: ContentClaim
  /// Whether the app has promised it and not answered yet.
  package var isPromised: Bool
  private let answer: ContentAnswer

  package init(id: UUID, task: Task<Void, Never>, answer: ContentAnswer, isPromised: Bool) {
    self.id = id
    self.task = task
    self.answer = answer
    self.isPromised = isPromised
    claim = ContentClaim(answer)
  }

  /// Whether it ends by itself: no promise is open that nobody here is working on.
  var endsByItself: Bool { !isPromised || !answer.isLeftToTheApp }

  /// The operations that it satisfies, as the progress manager knows them.
  package var operations: [UploadProgress.Operation] { answer.uploads }
}
