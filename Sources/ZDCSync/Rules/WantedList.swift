package import ZDCClientStore
package import ZDCProtocol

/// The next version of an access list: the list in force with the queued changes. Pure.
package struct WantedList: Equatable {
  package struct Change: Equatable {
    package var operation: Int64
    package var change: ListChange

    package init(operation: Int64, change: ListChange) { (self.operation, self.change) = (operation, change) }
  }

  /// The members after the changes.
  package private(set) var permissions: [UserID: ZoneACL.Permissions]
  /// Operations that the next version carries out.
  package private(set) var effective: [Int64] = []
  /// Operations whose wanted state is already in force.
  package private(set) var done: [Int64] = []
  /// Operations that the list does not allow the writer.
  package private(set) var refused: [Int64] = []
  /// Operations that would add a member to a full list.
  package private(set) var excess: [Int64] = []
  /// Whether the zone gets a fresh key, because a member loses access.
  package private(set) var isRotation = false
  /// Whether the writer removes themselves, which is a version that changes nothing else and keeps the key (R4).
  package private(set) var isSelfRemoval = false

  /// - Parameters:
  ///   - list: The list in force.
  ///   - changes: Changes in queue order. Of several changes of a member's entry, the last one counts.
  package init(after list: ZoneACL.Fields, _ changes: [Change], by writer: UserID) {
    permissions = Dictionary(uniqueKeysWithValues: list.entries.map { ($0.user, $0.permissions) })
    let last = LastChanges(changes)
    let leave = last.changes.first { list.isSelfRemoval($0.change, by: writer) && !list.has($0.change) }
    for item in last.changes where item != leave { take(item, last.operations(of: item), list, writer) }
    // The writer's other changes come first; after leaving they may change nothing.
    if let leave, effective.isEmpty {
      (isSelfRemoval, permissions[writer], effective) = (true, nil, last.operations(of: leave))
    }
  }

  private mutating func take(_ item: Change, _ operations: [Int64], _ list: ZoneACL.Fields, _ writer: UserID) {
    guard !list.has(item.change) else { return done.append(contentsOf: operations) }
    guard list.allows(item.change, by: writer) else { return refused.append(contentsOf: operations) }
    switch item.change {
    case .set(let user, let wanted), .modify(let user, let wanted):
      let isNew = permissions[user] == nil
      guard !isNew || permissions.count < Limits.aclEntries else { return excess.append(contentsOf: operations) }
      permissions[user] = wanted
    case .remove(let user): (permissions[user], isRotation) = (nil, true)
    case .rotate: isRotation = true
    }
    effective.append(contentsOf: operations)
  }

  package var isEmpty: Bool { effective.isEmpty }
  /// Whether operations leave the queue, or are parked, without another version.
  var hasSettled: Bool { !(done.isEmpty && refused.isEmpty && excess.isEmpty) }

  /// The members who need a grant: new ones, or all with a fresh key.
  package func recipients(after list: ZoneACL.Fields) -> [UserID] {
    permissions.keys.filter { isRotation || list.entry(for: $0) == nil }.sorted()
  }
}

/// The last change of each member's entry. A change that was in flight returns to the queue if its request fails, in front
/// of one that the app has queued since.
private struct LastChanges {
  private(set) var changes: [WantedList.Change] = []
  private var operationsByMember: [UserID: [Int64]] = [:]

  init(_ all: [WantedList.Change]) {
    for item in all {
      if let member = item.change.member { operationsByMember[member, default: []].append(item.operation) }
    }
    changes = all.filter { operations(of: $0).last == $0.operation }
  }

  /// Returns the operations that have the outcome of a change: its own, and those of earlier changes of the same entry.
  func operations(of item: WantedList.Change) -> [Int64] {
    item.change.member.flatMap { operationsByMember[$0] } ?? [item.operation]
  }
}

extension ZoneACL.Fields {
  fileprivate func isSelfRemoval(_ change: ListChange, by writer: UserID) -> Bool {
    change == .remove(writer) && writer != owner
  }
}
