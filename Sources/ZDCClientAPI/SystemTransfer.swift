package import Foundation
package import ZDCProtocol

/// A request that the system makes while the app is suspended or has ended. It carries only ciphertext and the session's
/// token.
package struct SystemTransfer: Sendable {
  package let id: SystemTransferID
  /// Scheme, host and port.
  package let origin: String
  /// The request without its body.
  package let request: TransportRequest
  /// The file with the body of an upload; nil for a download, whose answer becomes a file.
  package let file: URL?

  package init(id: SystemTransferID, origin: String, request: TransportRequest, file: URL?) {
    self.id = id
    self.origin = origin
    self.request = request
    self.file = file
  }
}

/// Identifies a transfer by what it carries, in every launch of the app.
package enum SystemTransferID: Hashable, Sendable {
  /// A range of a content blob's ciphertext.
  case content(BlobID, Range<UInt64>)
  /// The proof for leaves of a content blob.
  case proof(BlobID, Range<UInt64>)
  /// A part of an upload.
  case part(BlobID, Int)
  /// A commit request.
  case commit(CommitHash)

  /// The download, upload or commit that a transfer serves. The process takes over all transfers of one together.
  package enum Subject: Hashable, Sendable {
    case blob(BlobID)
    case commit(CommitHash)
  }

  package var subject: Subject {
    switch self {
    case .content(let blob, _), .proof(let blob, _), .part(let blob, _): .blob(blob)
    case .commit(let hash): .commit(hash)
    }
  }

  /// The ID as text, which is also a file name.
  package var text: String {
    switch self {
    case .content(let blob, let range): "content-\(blob.text)-\(range.lowerBound)-\(range.upperBound)"
    case .proof(let blob, let leaves): "proof-\(blob.text)-\(leaves.lowerBound)-\(leaves.upperBound)"
    case .part(let blob, let index): "part-\(blob.text)-\(index)"
    case .commit(let hash): "commit-\(hash.text)"
    }
  }

  /// Returns nil for text of another form.
  package init?(text: String) {
    let words = text.split(separator: "-", omittingEmptySubsequences: false)
    let numbers = words.dropFirst(2).compactMap { UInt64($0) }
    guard words.count >= 2, numbers.count == words.count - 2 else { return nil }
    switch (words[0], BlobID(text: words[1]), numbers.count) {
    case ("content", let blob?, 2) where numbers[0] < numbers[1]: self = .content(blob, numbers[0]..<numbers[1])
    case ("proof", let blob?, 2) where numbers[0] < numbers[1]: self = .proof(blob, numbers[0]..<numbers[1])
    case ("part", let blob?, 1): self = .part(blob, Int(clamping: numbers[0]))
    case ("commit", nil, 0):
      guard let hash = CommitHash(text: words[1]) else { return nil }
      self = .commit(hash)
    default: return nil
    }
  }
}

/// The system's service that makes requests for an app that is suspended or has ended.
package protocol SystemTransfers: Sendable {
  /// The name under which the system keeps this app's transfers, the same in every launch.
  var identifier: String { get }

  /// Connects to the transfers of this app, in whichever launch they were started. Calls after the first have no effect.
  ///
  /// Ends that no process has seen are reported afterwards.
  func connect(_ events: SystemTransferEvents)

  /// Starts a transfer. The system keeps it from here on.
  func start(_ transfer: SystemTransfer) async throws

  /// Returns the IDs of the transfers whose end has not been reported.
  func pending() async -> [String]

  /// Asks the system to stop transfers. The end of each is reported. IDs of other transfers have no effect.
  func cancel(_ ids: Set<String>) async

  /// Gives up the connection, because the database closes.
  func disconnect()
}

/// Receives the system's reports, each on any thread. Reports of one transfer come in order.
package struct SystemTransferEvents: Sendable {
  /// An answer's body is in a file, which exists until the function returns.
  package let received: @Sendable (_ id: String, _ status: Int, _ file: URL) -> Void
  /// A transfer has ended, successfully or not.
  package let ended: @Sendable (_ id: String) -> Void
  /// All reports for which the system launched or resumed the app have been made.
  package let allDelivered: @Sendable () -> Void

  package init(
    received: @escaping @Sendable (_ id: String, _ status: Int, _ file: URL) -> Void,
    ended: @escaping @Sendable (_ id: String) -> Void, allDelivered: @escaping @Sendable () -> Void
  ) {
    self.received = received
    self.ended = ended
    self.allDelivered = allDelivered
  }
}

// MARK: The requests

extension ServerAPI {
  /// - Parameter range: A range of the ciphertext, or all of it.
  package func systemContent(
    _ zone: ZoneID, node: NodeID, blob: BlobID, range: Range<UInt64>, cipherLength: UInt64
  ) async throws -> SystemTransfer {
    let isWhole = range == 0..<cipherLength
    let request = Self.contentRequest(zone, node: node, blob: blob, range: isWhole ? nil : range)
    return try await transfer(.content(blob, range), request)
  }

  package func systemProof(
    _ zone: ZoneID, node: NodeID, blob: BlobID, leaves: Range<UInt64>
  ) async throws -> SystemTransfer {
    try await transfer(.proof(blob, leaves), Self.proofRequest(zone, node: node, blob: blob, leaves: leaves))
  }

  /// - Parameter file: The part's bytes.
  package func systemPart(_ blob: BlobID, index: Int, hash: [UInt8], file: URL) async throws -> SystemTransfer {
    try await transfer(.part(blob, index), Self.partRequest(blob, index: index, body: .none, hash: hash), file)
  }

  /// - Parameter file: The commit request.
  package func systemCommit(_ hash: CommitHash, file: URL) async throws -> SystemTransfer {
    try await transfer(.commit(hash), Self.commitRequest(.none), file)
  }

  private func transfer(
    _ id: SystemTransferID, _ request: TransportRequest, _ file: URL? = nil
  ) async throws -> SystemTransfer {
    let request = request.authorized(try await session.currentToken())
    return SystemTransfer(id: id, origin: connection.origin, request: request, file: file)
  }
}
