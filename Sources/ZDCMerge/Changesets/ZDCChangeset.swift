public import Foundation

/// A record of how one of the app's values was changed, so that the change can be undone and merged.
///
/// It contains only the **old** values of what was changed. That is enough to undo the change. Undoing the changesets
/// of all queued uploads, newest first, restores the common ancestor that a three-way merge needs.
///
/// ``ZDCSyncable/changeset()`` makes one. Pass it to `queueDataUpload(forNodeID:withChangeset:)`, which stores it with
/// the queued operation until that has finished. `pendingChangesets(forNodeID:)` returns it.
///
/// Values may be nested 50 levels deep; a changeset of a deeper value cannot be read back.
///
/// Stored changesets may outlive the app version that wrote them. Reading never fails: bytes that are not a changeset
/// are kept, and the call that wants to use them throws ``ZDCSyncableError`` with `malformedChangeset`.
///
/// ```swift
/// task.title = "oat milk"
/// if let changeset = try task.changeset() {
///   cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: changeset)
/// }
/// ```
public struct ZDCChangeset: Sendable, Hashable {
  private enum Content: Hashable {
    case tree(ChangeTree)
    case unreadable(Data)
  }

  private var content: Content

  /// Creates a changeset from bytes that an earlier run of the app stored. Invalid bytes are detected when it is used.
  ///
  /// ```swift
  /// let undoList = pending.map(\.encoded)  // stored with the app's own data
  /// let restored = undoList.map { ZDCChangeset(encoded: $0) }
  /// ```
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

  /// The changeset that changes nothing.
  public static let empty = ZDCChangeset(ChangeTree(.nothing))

  /// The changeset as bytes. It contains values of the app: store it encrypted, never send it.
  public var encoded: Data {
    switch content {
    case .tree(let tree): tree.encoded
    case .unreadable(let bytes): bytes
    }
  }

  /// Whether undoing the changeset changes nothing. False for bytes that are not a changeset.
  public var isEmpty: Bool { content == .tree(ChangeTree(.nothing)) }

  /// Returns the parsed form, or nil if the changeset changes nothing.
  ///
  /// - Throws: `malformedChangeset`; `mismatchedChangeset` if it was made for another kind of value.
  func tree(_ kind: ChangeTree.Kind) throws(ZDCSyncableError) -> ChangeTree? {
    guard case .tree(let tree) = content, tree.kind != .unreadable else { throw ZDCSyncableError(.malformedChangeset) }
    guard tree.kind != .nothing else { return nil }
    guard tree.kind == kind else { throw ZDCSyncableError(.mismatchedChangeset) }
    return tree
  }

  /// The changeset as a child of another changeset.
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

  /// Decodes a changeset as ``encode(to:)`` wrote it. Its content is checked when it is undone or merged.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(encoded: try container.decode(Data.self, forKey: .encoded))
  }

  /// Encodes the changeset as one field of bytes, in a form that later versions of the framework read.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(encoded, forKey: .encoded)
  }
}
