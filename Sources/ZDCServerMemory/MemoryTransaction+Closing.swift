internal import ZDCProtocol
internal import ZDCServer

// Removing the data of closed accounts.
extension MemoryTransaction {
  func removeClosedAccounts(closedBefore: UInt64, limit: Int) throws -> Collected {
    try check(.upkeep)
    let closed = tables.users.values.first { user in
      (user.closedMs ?? .max) < closedBefore && tables.keyrings[user.id] != nil
    }
    guard let closed else { return Collected(files: [], isMore: false) }
    removeLogins(of: closed)
    let zones = Set(tables.zones.filter { $0.value.owner == closed.id }.keys)
    let blobs = tables.blobs.values.map(\.row).filter { zones.contains($0.zone) || $0.owner == closed.id }
    remove(blobs)
    removeTrees(of: closed.id, zones: zones)
    return Collected(blobs, isMore: true)
  }

  private func removeLogins(of user: UserRow) {
    tables.keyrings[user.id] = nil
    tables.devices[user.id] = nil
    tables.handles = tables.handles.filter { $0.value.user != user.id }
    tables.sessions = tables.sessions.filter { $0.value.user != user.id }
    tables.users[user.id]?.lookup = .random()
    tables.users[user.id]?.loginKey = []
  }

  private func removeTrees(of user: UserID, zones: Set<ZoneKey>) {
    for tree in tables.trees.filter({ $0.value.owner == user }).keys {
      tables.trees[tree] = nil
      tables.nodes[tree] = nil
    }
    tables.records = tables.records.filter { !zones.contains($0.value.zone) }
    let kept = tables.records
    tables.recordKeys = tables.recordKeys.mapValues { $0.filter { kept[$0] != nil } }.filter { !$0.value.isEmpty }
    tables.inboxes = tables.inboxes.filter { !zones.contains($0.key) }
    tables.memberships[user] = nil
    tables.memberships = tables.memberships.mapValues { $0.filter { !zones.contains($0.key) } }
    tables.zones = tables.zones.filter { !zones.contains($0.key) }
    tables.zoneKeys = tables.zoneKeys.filter { !zones.contains($0.value) }
  }
}

extension Collected {
  init(_ gone: [BlobRow], isMore: Bool) {
    let files = gone.filter { !$0.isInline }
    self.init(
      files: files.filter { $0.state == .attached }.map(\.id),
      uploads: files.filter { $0.state != .attached }.map(\.id),
      isMore: isMore)
  }
}
