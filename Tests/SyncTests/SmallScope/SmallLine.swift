import ZeroDarkCloud
import ZeroDarkCloudTesting

/// An entry that the merge journal of a device must have, because one of its app's changes, or one that it deletes, gave
/// way to another change.
struct SmallLine: Hashable, Sendable, CustomStringConvertible {
  var device: Int
  var kind: ZDCMergeJournalEntry.Kind
  /// Kinds that say as much.
  var orElse: Set<ZDCMergeJournalEntry.Kind> = []
  /// The line is about one of these: of a branch that was deleted, the journal names the top.
  var nodes: Set<SmallNode>
  /// The name that the app wanted, where the journal has to keep it.
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

  /// A line that the journal has about a node of the case.
  struct Told: CustomStringConvertible {
    var label: SmallNode
    var entry: ZDCMergeJournalEntry

    var description: String { "\(entry.kind.rawValue) \(label)" }
  }
}
