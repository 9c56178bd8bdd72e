import Testing
import ZDCTreesystem

/// The table "Outcomes of concurrent changes" of PROTOCOL 3.7, row by row.
@Suite struct ConflictRulesTests {
  private typealias Rules = ConflictRules

  struct Row: Sendable, CustomTestStringConvertible {
    var local: ConflictRules.Local
    var remote: ConflictRules.Remote
    var relation: ConflictRules.Relation
    var outcome: ConflictRules.Outcome

    init(
      _ local: ConflictRules.Local, _ remote: ConflictRules.Remote, _ relation: ConflictRules.Relation,
      _ outcome: ConflictRules.Outcome
    ) {
      self.local = local
      self.remote = remote
      self.relation = relation
      self.outcome = outcome
    }

    var testDescription: String { "\(local) / \(remote), \(relation) => \(outcome)" }
  }

  static let table: [Row] = [
    // create / create, same name: the later pusher's node becomes "N 2".
    Row(.create, .create, .sameName, .renameLocalNode),
    Row(.rename, .create, .sameName, .renameLocalNode),
    Row(.move, .rename, .sameName, .renameLocalNode),
    Row(.create, .moveInto, .sameName, .renameLocalNode),
    Row(.editData, .create, .sameName, .bothHold),
    Row(.delete, .create, .sameName, .bothHold),
    Row(.create, .delete, .sameName, .bothHold),
    // data / data.
    Row(.editData, .editData, .sameNode, .askAboutData),
    // data / rename, move, rotate: rebased silently.
    Row(.editData, .rename, .sameNode, .rebase),
    Row(.editData, .move, .sameNode, .rebase),
    Row(.editData, .rotate, .sameNode, .rebase),
    Row(.rename, .editData, .sameNode, .rebase),
    Row(.move, .rotate, .sameNode, .rebase),
    // rename / rename, move / move: the committed one wins.
    Row(.rename, .rename, .sameNode, .dropLocalChange),
    Row(.move, .move, .sameNode, .dropLocalChange),
    Row(.rename, .move, .sameNode, .dropLocalChange),
    Row(.move, .rename, .sameNode, .dropLocalChange),
    // A move that makes a cycle, or into a deleted node.
    Row(.move, .move, .destinationLost, .returnToCloudPlace),
    Row(.move, .delete, .destinationLost, .returnToCloudPlace),
    // At or below a remotely deleted node.
    Row(.create, .delete, .localBelowRemote, .askAboutDirtyDelete),
    Row(.editData, .delete, .localBelowRemote, .askAboutDirtyDelete),
    Row(.move, .delete, .localBelowRemote, .askAboutDirtyDelete),
    Row(.editData, .delete, .sameNode, .askAboutDirtyDelete),
    Row(.rename, .delete, .sameNode, .askAboutDirtyDelete),
    // delete F / remote create or edit inside F.
    Row(.delete, .create, .remoteBelowLocal, .deleteAnyway),
    Row(.delete, .editData, .remoteBelowLocal, .deleteAnyway),
    // delete F / N moved into F since the delete was queued.
    Row(.delete, .moveInto, .remoteBelowLocal, .rescueThenDelete),
    // delete / delete · delete / rename or move.
    Row(.delete, .delete, .sameNode, .done),
    Row(.delete, .delete, .localBelowRemote, .done),
    Row(.delete, .delete, .remoteBelowLocal, .deleteAnyway),
    Row(.delete, .rename, .sameNode, .deleteAnyway),
    Row(.delete, .move, .sameNode, .deleteAnyway),
    Row(.delete, .editData, .sameNode, .deleteAnyway),
    // A parent and its child, neither deleted.
    Row(.create, .rename, .localBelowRemote, .bothHold),
    Row(.editData, .move, .localBelowRemote, .bothHold),
    Row(.move, .create, .remoteBelowLocal, .bothHold),
    // Its own creation comes back with a pull before the answer did.
    Row(.create, .create, .sameNode, .done),
  ]

  @Test(arguments: table)
  func outcomeIsWhatTheTableSays(row: Row) {
    #expect(ConflictRules.outcome(row.local, against: row.remote, row.relation) == row.outcome)
  }

  @Test func everyOutcomeHasARow() {
    #expect(Set(Self.table.map(\.outcome)).union([.bothHold]) == Set(ConflictRules.Outcome.allCases))
  }

  @Test func aQueuedDeleteIsNeverDroppedForSomethingThatOthersDid() {
    for remote in ConflictRules.Remote.allCases where remote != .delete {
      for relation: ConflictRules.Relation in [.sameNode, .remoteBelowLocal] {
        let outcome = ConflictRules.outcome(.delete, against: remote, relation)
        #expect(outcome == .deleteAnyway || outcome == .rescueThenDelete)
      }
    }
  }

  @Test func onlyDataAgainstDataAsksAboutData() {
    for local in ConflictRules.Local.allCases {
      for remote in ConflictRules.Remote.allCases {
        for relation in ConflictRules.Relation.allCases {
          let asks = ConflictRules.outcome(local, against: remote, relation) == .askAboutData
          guard asks else { continue }
          #expect(local == .editData && remote == .editData && relation != .localBelowRemote)
        }
      }
    }
  }
}
