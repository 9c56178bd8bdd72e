internal import Foundation

/// The destination of each node of a tree below the folder that the user named. Stores little per node, because there
/// may be a million nodes. Pure.
package struct ExportPlan: Sendable {
  /// The facts about a node that the plan needs.
  package struct Source: Sendable, Hashable {
    package var uuid: String
    package var name: String
    /// The size of its data in bytes; any node may have both data and children.
    package var dataSize: UInt64
    /// Whether the cloud has content for it.
    package var hasContent: Bool

    package init(uuid: String, name: String, dataSize: UInt64 = 0, hasContent: Bool = false) {
      self.uuid = uuid
      self.name = name
      self.dataSize = dataSize
      self.hasContent = hasContent
    }
  }

  /// The position of a node in the plan: parents before children, the top first.
  package typealias Index = Int

  private struct Item: Sendable {
    var uuid: UUID
    var parent: Int32
    /// Safe, and unique in its folder.
    var name: String
    var dataSize: UInt64
    var hasContent: Bool
    var isFolder = false
  }

  private var items: [Item] = []
  /// Ids that are not UUIDs, such as a trunk's.
  private var texts: [Index: String] = [:]
  /// Names of the data files of nodes that are exported as folders.
  private var dataNames: [Index: String] = [:]
  private let policy: ExportNamePolicy
  private let foldsCase: Bool
  /// The names from the folder that the user named down to the top; empty if the top is that folder.
  private let top: [String]
  /// Nodes whose names had to be changed.
  package private(set) var renamed: [(from: String, to: [String])] = []

  /// The file name for the data of a node that has children: the node becomes a folder with its data inside.
  package static let dataName = "_content"

  package init(_ source: Source, at top: [String], policy: ExportNamePolicy, foldsCase: Bool) {
    self.policy = policy
    self.foldsCase = foldsCase
    self.top = top
    append(source, name: "", parent: -1)
  }

  package var indices: Range<Index> { items.indices }
  package var dataBytes: UInt64 { items.reduce(0) { $0 + $1.dataSize } }
  package var contentCount: Int { items.count { $0.hasContent } }

  /// Assigns names to the children of a node, which becomes a folder. Does not add them.
  package mutating func names(of children: [Source], in folder: Index) -> [String] {
    guard !children.isEmpty else { return [] }
    items[folder].isFolder = true
    let hasData = items[folder].dataSize > 0
    let names = ExportNames.assign(
      children.map(\.name) + (hasData ? [Self.dataName] : []), policy: policy, foldsCase: foldsCase)
    if hasData { dataNames[folder] = names[children.count] }
    return names
  }

  /// - Parameter name: The name that ``names(of:in:)`` assigned.
  package mutating func add(_ source: Source, as name: String, in folder: Index) -> Index {
    let index = append(source, name: name, parent: Int32(folder))
    if Array(name.utf8) != Array(source.name.utf8) { renamed.append((source.name, place(index))) }
    return index
  }

  @discardableResult
  private mutating func append(_ source: Source, name: String, parent: Int32) -> Index {
    let uuid = UUID(uuidString: source.uuid)
    if uuid?.uuidString != source.uuid { texts[items.count] = source.uuid }
    items.append(
      Item(
        uuid: uuid ?? UUID(), parent: parent, name: name, dataSize: source.dataSize, hasContent: source.hasContent))
    return items.count - 1
  }

  // MARK: Look-ups

  package func uuid(_ index: Index) -> String { texts[index] ?? items[index].uuid.uuidString }
  /// The node above it in the plan; nil for the top.
  package func parent(_ index: Index) -> Index? { items[index].parent >= 0 ? Index(items[index].parent) : nil }
  package func hasContent(_ index: Index) -> Bool { items[index].hasContent }
  package func dataSize(_ index: Index) -> UInt64 { items[index].dataSize }
  /// Whether other nodes are exported into it.
  package func isFolder(_ index: Index) -> Bool { items[index].isFolder }

  /// Returns the safe names from the folder that the user named down to the node.
  package func place(_ index: Index) -> [String] {
    var names: [String] = []
    var next = items[index]
    while next.parent >= 0 {
      names.append(next.name)
      next = items[Int(next.parent)]
    }
    return top + names.reversed()
  }

  /// Returns the place of a node's data: the node's own place, or a file inside it.
  package func dataPlace(_ index: Index) -> [String] {
    place(index) + (dataNames[index].map { [$0] } ?? [])
  }
}
