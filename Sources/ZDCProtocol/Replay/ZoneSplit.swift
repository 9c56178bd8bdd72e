/// The result of an accepted commit.
package struct ZoneStep: Sendable {
  /// The new head. Its access list is the one in force, and the only one that the caller stores.
  package var head: ZoneHead
  /// The branch that the commit splits off; nil without a split.
  package var split: ZoneSplit?
  /// The writer's permissions before the commit. The commit's records are checked against them.
  package var permissions: ZoneACL.Permissions
}

/// A branch that became its own zone, as the parent zone's log has it.
///
/// The caller checks the genesis of the new zone with ``check(_:)``, and replays it with ``list``.
package struct ZoneSplit: Sendable, Hashable {
  /// The new zone.
  package var zone: ZoneID
  /// The genesis commit of the new zone.
  package var genesis: CommitHash
  /// The parent zone's head before the split.
  package var parentHead: CommitHash
  package var list: StateList

  package init(zone: ZoneID, genesis: CommitHash, parentHead: CommitHash, list: StateList) {
    self.zone = zone
    self.genesis = genesis
    self.parentHead = parentHead
    self.list = list
  }

  /// Checks that a commit is the genesis that the parent zone names, and begins with the branch that was split off.
  ///
  /// - Throws: `ZDCSecurityError` with `splitMismatch`.
  package func check(_ commit: ZoneCommit) throws(ZDCSecurityError) {
    let state = ZoneOperation.GenesisState(parentHead: parentHead, stateRoot: list.root, count: list.count)
    let isOrigin = commit.hash == genesis && commit.fields.zone == zone && commit.fields.genesisState == state
    guard isOrigin else { throw ZDCSecurityError(.splitMismatch, zone: zone) }
  }
}
