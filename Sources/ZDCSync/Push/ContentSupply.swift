package import Foundation
package import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol
package import ZDCTransfers

/// Sealed content for one upload.
package enum SuppliedContent: Sendable {
  /// Sent inside the commit request.
  case inline(SealedContent)
  /// Already on the server; `fields` returns its root and length.
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

/// A request to the app for a node's content, as of the time when these operations were queued.
package struct ContentClaim: Sendable {
  /// The operations that the content satisfies. Operation IDs are never reused, unlike node row IDs.
  package var covers: [Int64]
  /// The version that the edit was based on at that time. If the operation's version changes, the app has merged and
  /// the answer is outdated.
  package var baseETag: String?
  /// The node ID, to which an upload is bound. A node that is kept after a remote delete gets a new ID.
  package var nodeID: NodeID

  package init(_ answer: ContentAnswer) {
    covers = answer.covers
    baseETag = answer.baseETag
    nodeID = answer.nodeID
  }

  /// Returns whether the content is still what the operation must send.
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

/// Content that is being awaited, or sealed or sent in a dedicated task.
package struct Upload: Sendable {
  package var id: UUID
  package var task: Task<Void, Never>
  package var claim: ContentClaim
  /// Whether the app has promised the content but not provided it yet.
  package var isPromised: Bool
  private let answer: ContentAnswer

  package init(id: UUID, task: Task<Void, Never>, answer: ContentAnswer, isPromised: Bool) {
    self.id = id
    self.task = task
    self.answer = answer
    self.isPromised = isPromised
    claim = ContentClaim(answer)
  }

  /// Whether the upload ends without action by the app: it has no open promise that is left to the app.
  var endsByItself: Bool { !isPromised || !answer.isLeftToTheApp }

  /// The operations that the upload satisfies, in the form that the progress manager uses.
  package var operations: [UploadProgress.Operation] { answer.uploads }
}
