internal import Foundation

/// The changes in a set. Leaves: added members; removed members.
struct MemberChange<Member: Hashable & Codable & Sendable> {
  private var added: [Member]
  private var removed: [Member]

  init(from old: Set<Member>, to new: Set<Member>) throws(ZDCSyncableError) {
    added = try ValueCoding.sorted(new.subtracting(old))
    removed = try ValueCoding.sorted(old.subtracting(new))
  }

  func tree() throws(ZDCSyncableError) -> ChangeTree? {
    guard !(added.isEmpty && removed.isEmpty) else { return nil }
    return ChangeTree(.members, leaves: [try ValueCoding.encode(added), try ValueCoding.encode(removed)])
  }

  init(_ tree: ChangeTree) throws(ZDCSyncableError) {
    try tree.expectLeaves(2)
    try tree.expectChildren(0)
    added = try tree.leaf(0)
    removed = try tree.leaf(1)
  }

  func revert(_ members: inout Set<Member>, strictly: Bool) throws(ZDCSyncableError) {
    for member in added where members.remove(member) == nil && strictly { throw ZDCSyncableError(.mismatchedChangeset) }
    for member in removed where !members.insert(member).inserted && strictly {
      throw ZDCSyncableError(.mismatchedChangeset)
    }
  }

  static func merge(_ mine: inout Set<Member>, base: Set<Member>, cloudVersion: Set<Member>) {
    let all = mine.union(cloudVersion)
    mine = all.filter {
      ThreeWay.resolve(base: base.contains($0), mine: mine.contains($0), theirs: cloudVersion.contains($0))
    }
  }
}
