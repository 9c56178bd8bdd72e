internal import Foundation

/// A parsed changeset: its leaves are values as JSON arrays, its children the changesets of nested values.
///
/// The encoding is the magic, then a tree. A tree is its kind (u8), the number of leaves (u32), the leaves, each
/// preceded by its length (u32), the number of children (u32), and the children, each a tree. Integers are big-endian.
/// Each tree has exactly one encoding.
struct ChangeTree: Sendable, Hashable {
  enum Kind: UInt8, Sendable {
    case nothing = 0
    /// One leaf: the old value.
    case value = 1
    /// One child: the changeset of the value inside.
    case nested = 2
    /// One leaf: the names of the fields. One child for each field.
    case record = 3
    /// `KeyedChange`.
    case keyed = 4
    /// `MemberChange`.
    case members = 5
    /// `OrderChange`.
    case order = 6
    /// Two children: values by key, and the order of the keys. Either may be nothing.
    case orderedKeyed = 7
    /// One leaf: bytes that were already not a valid changeset when they were added.
    case unreadable = 8
  }

  /// The maximum depth of a stored changeset. Deeper ones are rejected, because the reader recurses.
  static let maxDepth = 100

  private static let magic = [UInt8]("ZCS1".utf8)

  var kind: Kind
  var leaves: [Data]
  var children: [ChangeTree]

  init(_ kind: Kind, leaves: [Data] = [], children: [ChangeTree] = []) {
    self.kind = kind
    self.leaves = leaves
    self.children = children
  }

  // MARK: Reading

  /// - Throws: `malformedChangeset` unless there are exactly that many leaves.
  func expectLeaves(_ count: Int) throws(ZDCSyncableError) {
    guard leaves.count == count else { throw ZDCSyncableError(.malformedChangeset) }
  }

  /// - Throws: `malformedChangeset` unless there are exactly that many children.
  func expectChildren(_ count: Int) throws(ZDCSyncableError) {
    guard children.count == count else { throw ZDCSyncableError(.malformedChangeset) }
  }

  func leaf<T: Decodable>(_ index: Int, _ type: [T].Type = [T].self) throws(ZDCSyncableError) -> [T] {
    guard leaves.indices.contains(index) else { throw ZDCSyncableError(.malformedChangeset) }
    return try ValueCoding.decode(type, leaves[index])
  }

  // MARK: Bytes

  var encoded: Data {
    var bytes = Self.magic
    append(to: &bytes)
    return Data(bytes)
  }

  private func append(to bytes: inout [UInt8]) {
    bytes.append(kind.rawValue)
    Self.append(leaves.count, to: &bytes)
    for leaf in leaves {
      Self.append(leaf.count, to: &bytes)
      bytes.append(contentsOf: leaf)
    }
    Self.append(children.count, to: &bytes)
    for child in children { child.append(to: &bytes) }
  }

  private static func append(_ count: Int, to bytes: inout [UInt8]) {
    for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
  }

  /// Parses the bytes; nil unless they are exactly one changeset.
  init?(encoded: Data) {
    var rest = ArraySlice([UInt8](encoded))
    guard rest.starts(with: Self.magic) else { return nil }
    rest = rest.dropFirst(Self.magic.count)
    guard let tree = Self.read(&rest, depth: 1), rest.isEmpty else { return nil }
    self = tree
  }

  private static func read(_ rest: inout ArraySlice<UInt8>, depth: Int) -> ChangeTree? {
    guard depth <= maxDepth, let byte = rest.popFirst(), let kind = Kind(rawValue: byte) else { return nil }
    var tree = ChangeTree(kind)
    guard let leafCount = readCount(&rest) else { return nil }
    for _ in 0..<leafCount {
      guard let length = readCount(&rest), length <= rest.count else { return nil }
      tree.leaves.append(Data(rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    guard let childCount = readCount(&rest) else { return nil }
    for _ in 0..<childCount {
      guard let child = read(&rest, depth: depth + 1) else { return nil }
      tree.children.append(child)
    }
    return kind == .nothing && tree != ChangeTree(.nothing) ? nil : tree
  }

  private static func readCount(_ rest: inout ArraySlice<UInt8>) -> Int? {
    guard rest.count >= 4 else { return nil }
    let count = rest.prefix(4).reduce(0) { $0 << 8 | UInt64($1) }
    rest = rest.dropFirst(4)
    return Int(exactly: count)
  }
}
