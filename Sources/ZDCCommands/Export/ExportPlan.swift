internal import Foundation

/// Where each node of a tree goes below the folder that the user named. Holds little of each, because there may be a
/// million. Pure.
package struct ExportPlan: Sendable {
  /// What the plan has to know of a node.
  package struct Source: Sendable, Hashable {
    package var uuid: String
    package var name: String
    /// Bytes of its data; any node may have both data and children.
    package var dataSize: UInt64
    /// Whether the cloud has a content of it.
    package var hasContent: Bool

    package init(uuid: String, name: String, dataSize: UInt64 = 0, hasContent: Bool = false) {
      self.uuid = uuid
      self.name = name
      self.dataSize = dataSize
      self.hasContent = hasContent
    }
  }

  /// A node, by its place in the order of the plan: parents before children, the top first.
  package typealias Index = Int

  private struct Item: Sendable {
    var uuid: UUID
    var parent: Int32
    /// Safe, and like no other in its folder.
    var name: String
    var dataSize: UInt64
    var hasContent: Bool
    var isFolder = false
  }

  private var items: [Item] = []
  /// Uuids of other forms: that of a trunk.
  private var texts: [Index: String] = [:]
  /// Names of the files for the data of nodes that are folders here.
  private var dataNames: [Index: String] = [:]
  private let policy: ExportNamePolicy
  private let foldsCase: Bool
  /// Names from the folder that the user named to the top; none if the top is that folder.
  private let top: [String]
  /// Names that could not be kept.
  package private(set) var renamed: [(from: String, to: [String])] = []

  /// A node that has children and data is a folder; its data goes into a file of this name inside.
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

  /// Names the children of a node, which then is a folder. None of them is added.
  package mutating func names(of children: [Source], in folder: Index) -> [String] {
    guard !children.isEmpty else { return [] }
    items[folder].isFolder = true
    let hasData = items[folder].dataSize > 0
    let names = ExportNames.assign(
      children.map(\.name) + (hasData ? [Self.dataName] : []), policy: policy, foldsCase: foldsCase)
    if hasData { dataNames[folder] = names[children.count] }
    return names
  }

  /// - Parameter name: what ``names(of:in:)`` gave it.
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

  // MARK: Looking

  package func uuid(_ index: Index) -> String { texts[index] ?? items[index].uuid.uuidString }
  package func hasContent(_ index: Index) -> Bool { items[index].hasContent }
  package func dataSize(_ index: Index) -> UInt64 { items[index].dataSize }
  /// Whether other nodes go into it.
  package func isFolder(_ index: Index) -> Bool { items[index].isFolder }

  /// Safe names from the folder that the user named down.
  package func place(_ index: Index) -> [String] {
    var names: [String] = []
    var next = items[index]
    while next.parent >= 0 {
      names.append(next.name)
      next = items[Int(next.parent)]
    }
    return top + names.reversed()
  }

  /// Where a node's data goes: its own place, or a file inside it.
  package func dataPlace(_ index: Index) -> [String] {
    place(index) + (dataNames[index].map { [$0] } ?? [])
  }
}
