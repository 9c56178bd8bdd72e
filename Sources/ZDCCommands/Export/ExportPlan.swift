/// Where each node of a tree goes below the folder that the user named. Pure.
package struct ExportPlan: Sendable {
  package struct Source: Sendable, Hashable {
    package var id: String
    /// Nil for the top.
    package var parent: String?
    package var name: String
    /// Whether there is data beside the children: any node may have both.
    package var hasData: Bool

    package init(id: String, parent: String?, name: String, hasData: Bool) {
      self.id = id
      self.parent = parent
      self.name = name
      self.hasData = hasData
    }
  }

  /// Safe names from the top down; empty for the top itself.
  package private(set) var placeByID: [String: [String]] = [:]
  package private(set) var foldersByID: Set<String> = []
  /// Names that could not be kept, in the order of the sources.
  package private(set) var renamed: [(from: String, to: [String])] = []

  /// A node that has children and data is a folder; its data goes into a file of this name inside.
  package static let dataName = "_content"

  /// - Parameter sources: parents before children.
  package init(_ sources: [Source], policy: ExportNamePolicy, foldsCase: Bool) {
    var childrenByID: [String: [Int]] = [:]
    for (index, source) in sources.enumerated() {
      if let parent = source.parent {
        childrenByID[parent, default: []].append(index)
      } else {
        placeByID[source.id] = []
      }
    }
    for source in sources {
      guard let children = childrenByID[source.id], let place = placeByID[source.id] else { continue }
      foldersByID.insert(source.id)
      let names = children.map { sources[$0].name } + (source.hasData ? [Self.dataName] : [])
      let safe = ExportNames.assign(names, policy: policy, foldsCase: foldsCase)
      for (name, child) in zip(safe, children) {
        placeByID[sources[child].id] = place + [name]
        if Array(name.utf8) != Array(sources[child].name.utf8) {
          renamed.append((sources[child].name, place + [name]))
        }
      }
      if source.hasData { dataPlaceByID[source.id] = place + [safe[safe.count - 1]] }
    }
  }

  private var dataPlaceByID: [String: [String]] = [:]

  /// Where a node's data goes: its own place, or a file inside it.
  package func dataPlace(_ id: String) -> [String]? {
    dataPlaceByID[id] ?? placeByID[id]
  }
}
