import ZeroDarkCloud
import ZeroDarkCloudTesting

/// An entry that a device's merge journal must have, because a change of its app, or one that its app deletes, gave way
/// to another change.
struct SmallLine: Hashable, Sendable, CustomStringConvertible {
  var device: Int
  var kind: ZDCMergeJournalEntry.Kind
  /// Other kinds that say the same.
  var orElse: Set<ZDCMergeJournalEntry.Kind> = []
  /// The nodes that the entry may be about: for a deleted branch, the journal names the top.
  var nodes: Set<SmallNode>
  /// The name that the app wanted, where the journal must keep it.
  var name: String?

  var description: String {
    let device = device == 0 ? "A" : "B"
    let wanted = name.map { ", wanted \($0)" } ?? ""
    return "\(device): \(kind.rawValue) \(nodes.sorted().map(\.description).joined(separator: " or "))\(wanted)"
  }

  func isTold(by told: Told) -> Bool {
    guard told.entry.kind == kind || orElse.contains(told.entry.kind), nodes.contains(told.label) else { return false }
    return name == nil || told.entry.mine.path?.nodeName == name
  }

  /// An entry that the journal has about a node of the case.
  struct Told: CustomStringConvertible {
    var label: SmallNode
    var entry: ZDCMergeJournalEntry

    var description: String { "\(entry.kind.rawValue) \(label)" }
  }
}
