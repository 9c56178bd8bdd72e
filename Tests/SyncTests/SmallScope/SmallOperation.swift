/// A node of the small tree, by its name at the start or by the number of the operation that made it.
///
/// ```
/// top ── k ── n ── f
///     └─ e
/// ```
enum SmallNode: Hashable, Sendable, Comparable, CustomStringConvertible {
  case top, k, n, f, e
  case made(Int)

  /// The nodes at the start, parents first.
  static let atStart: [(node: SmallNode, parent: SmallNode)] = [(.k, .top), (.n, .k), (.f, .n), (.e, .top)]

  var description: String {
    switch self {
    case .top: "top"
    case .k: "k"
    case .n: "n"
    case .f: "f"
    case .e: "e"
    case .made(let number): "#\(number)"
    }
  }
}

/// One change by an app. A created or renamed node is named `x`; a moved one keeps its name.
enum SmallOperation: Hashable, Sendable, CustomStringConvertible {
  case edit(SmallNode)
  case create(SmallNode)
  case rename(SmallNode)
  case move(SmallNode, SmallNode)
  case delete(SmallNode)
  /// Deletes a node and creates another one under its name: a file becomes a folder, or a folder a file.
  case replace(SmallNode)

  /// The number of operations of a commit that it may become.
  var weight: Int { if case .replace = self { 2 } else { 1 } }

  /// The top of the branch that it deletes.
  var deleted: SmallNode? {
    switch self {
    case .delete(let node), .replace(let node): node
    default: nil
    }
  }

  var description: String {
    switch self {
    case .edit(let node): "edit \(node)"
    case .create(let parent): "create \(parent)/x"
    case .rename(let node): "rename \(node) x"
    case .move(let node, let parent): "move \(node) to \(parent)"
    case .delete(let node): "delete \(node)"
    case .replace(let node): "replace \(node)"
    }
  }
}

extension SmallOperation {
  /// Every operation on the initial tree, up to choices that differ only in a name.
  static let all: [SmallOperation] =
    [.edit(.f), .edit(.e), .edit(.n)]
    + [.create(.top), .create(.n), .create(.e)]
    + [.rename(.k), .rename(.n), .rename(.f), .rename(.e)]
    + [.move(.n, .top), .move(.n, .e), .move(.f, .top), .move(.f, .k), .move(.f, .e)]
    + [.move(.k, .e), .move(.e, .k), .move(.e, .n), .move(.k, .n), .move(.n, .k)]
    + [.delete(.k), .delete(.n), .delete(.f), .delete(.e)]
    + [.replace(.e), .replace(.n)]

  /// The operations that change the shape of the tree around the folder `n`, with one edit and one creation in it.
  static let core: [SmallOperation] = [
    .edit(.f), .create(.n), .rename(.n), .move(.n, .top), .move(.f, .top), .move(.e, .n), .move(.k, .e), .delete(.k),
    .delete(.n), .replace(.n), .replace(.e),
  ]

  /// Returns the operations on a node that an earlier one has made.
  static func on(_ made: SmallNode) -> [SmallOperation] {
    [
      .edit(made), .delete(made), .replace(made), .create(made), .move(made, .top), .move(made, .e), .move(.n, made),
      .move(.f, made),
    ]
  }
}
