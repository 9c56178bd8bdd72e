public import Foundation

/// How one of the app's values was changed, so that the change can be undone and merged.
///
/// It holds the **old** values of what was changed, and nothing of the rest: undoing needs no more, and the
/// changesets of all queued uploads, undone one after the other, give back what the edits began with, which a
/// three-way merge needs.
/// ``ZDCSyncable/changeset()`` makes one; hand it to `queueDataUpload(forNodeID:withChangeset:)`, which keeps it with
/// the queued operation until that is done, and get it back from `pendingChangesets(forNodeID:)`.
///
/// Values may lie inside of each other 50 deep; a changeset of something deeper cannot be read back.
///
/// Stored changesets may outlive the app's version that wrote them. Reading never fails: bytes that are no changeset
/// are kept, and the call that wants to use them throws ``ZDCSyncableError/malformedChangeset``.
public struct ZDCChangeset: Sendable, Hashable {
  private enum Content: Hashable {
    case tree(ChangeTree)
    case unreadable(Data)
  }

  private var content: Content

  /// Keeps what an earlier run of the app stored. Bytes that are no changeset are noticed when it is used.
  public init(encoded: Data) {
    content = ChangeTree(encoded: encoded).map(Content.tree) ?? .unreadable(encoded)
  }

  init(_ tree: ChangeTree) {
    content = .tree(tree)
  }

  init?(_ tree: ChangeTree?) {
    guard let tree else { return nil }
    self.init(tree)
  }

  /// Changes nothing.
  public static let empty = ZDCChangeset(ChangeTree(.nothing))

  /// The changeset as bytes. It holds values of the app: store it sealed, never send it.
  public var encoded: Data {
    switch content {
    case .tree(let tree): tree.encoded
    case .unreadable(let bytes): bytes
    }
  }

  /// Whether undoing it would change nothing. False for bytes that are no changeset.
  public var isEmpty: Bool { content == .tree(ChangeTree(.nothing)) }

  /// The readable form, nil if it changes nothing.
  ///
  /// - Throws: `malformedChangeset`; `mismatchedChangeset` if it was made for another kind of value.
  func tree(_ kind: ChangeTree.Kind) throws(ZDCSyncableError) -> ChangeTree? {
    guard case .tree(let tree) = content, tree.kind != .unreadable else { throw .malformedChangeset }
    guard tree.kind != .nothing else { return nil }
    guard tree.kind == kind else { throw .mismatchedChangeset }
    return tree
  }

  /// As a part of another changeset.
  var asPart: ChangeTree {
    switch content {
    case .tree(let tree): tree
    case .unreadable(let bytes): ChangeTree(.unreadable, leaves: [bytes])
    }
  }
}

extension ZDCChangeset: Codable {
  private enum CodingKeys: CodingKey {
    case encoded
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(encoded: try container.decode(Data.self, forKey: .encoded))
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(encoded, forKey: .encoded)
  }
}
