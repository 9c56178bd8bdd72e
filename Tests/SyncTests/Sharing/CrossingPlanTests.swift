import GRDB
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZeroDarkCloud

/// Whether a branch can move to another one now: a table of what may be in the way.
struct CrossingPlanTests {
  typealias Verdict = CrossingPlan.Verdict

  /// A change of the rows, and the verdict about the branch after it. Later rows of the table are less urgent.
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let sql: String
    /// Nil if the branch can begin to move.
    let verdict: Verdict?

    init(_ name: String, _ sql: String, _ verdict: Verdict?) {
      (testDescription, self.sql, self.verdict) = (name, sql, verdict)
    }
  }

  private static let isMoving = """
    INSERT INTO zdc_moved (zone, nodeID, record, node, copyZone, copyID, isHeld, sealed)
    VALUES (:home, x'01', x'01', :inner, :list, x'01', 0, x'01')
    """

  private static let table = [
    Case("nothing is in the way", "", nil),
    Case("the branch has no parent yet", "UPDATE zdc_node SET parent = NULL WHERE id = :top", .waits(.notPulledYet)),
    Case("the new parent is in the old zone", "UPDATE zdc_node SET zone = :home WHERE id = :parent", .ends),
    Case(
      "the app has to decide", "UPDATE zdc_operation SET reason = 8 WHERE node = :top", .waits(.conflictHeld)),
    Case(
      "the app threw a moment ago", "UPDATE zdc_operation SET reason = 2, notBeforeMs = 1 << 60 WHERE node = :top",
      .waits(.backoff)),
    Case(
      "the app threw long ago", "UPDATE zdc_operation SET reason = 2, notBeforeMs = 1 WHERE node = :top", nil),
    Case(
      "the new zone was not pulled", "UPDATE zdc_zone SET headSeq = NULL WHERE id = :list", .waits(.notPulledYet)),
    Case(
      "the new parent is a placeholder", "UPDATE zdc_node SET parent = NULL, keyGen = 0 WHERE id = :parent",
      .waits(.notPulledYet)),
    Case(
      "the new zone is frozen", "UPDATE zdc_zone SET frozen = 'zoneRollback' WHERE id = :list", .waits(.zoneFrozen)),
    Case(
      "the new zone has no key", "UPDATE zdc_zone SET sealedKey = NULL WHERE id = :list", .waits(.unreadable)),
    Case(
      "the old zone has no key", "UPDATE zdc_zone SET sealedKey = NULL WHERE id = :home", .waits(.unreadable)),
    Case(
      "nodes move into a branch that is in the cloud", isMoving, .waits(.waitingForOperation)),
    Case(
      "nodes move into a branch that is not in the cloud",
      "\(isMoving); UPDATE zdc_node SET recordVersion = 0, recordHash = NULL WHERE id = :top", .holdsInner),
    Case(
      "a node is about to be shared", "UPDATE zdc_operation SET kind = 6 WHERE node = :inner",
      nil),
    Case(
      "a record of the zone was not read",
      "UPDATE zdc_leaf SET pending = 1 WHERE node = (SELECT nodeID FROM zdc_node WHERE id = :inner)",
      .waits(.notPulledYet)),
    Case(
      "a record cannot be read",
      "UPDATE zdc_leaf SET pending = 2 WHERE node = (SELECT nodeID FROM zdc_node WHERE id = :inner)",
      .waits(.unreadable)),
    Case(
      "the user may only read the old zone", "UPDATE zdc_zone SET ownerAccount = 1 WHERE id = :home", .isImpossible),
    Case(
      "the user may only read the new zone", "UPDATE zdc_zone SET ownerAccount = 1 WHERE id = :list", .isImpossible),
    Case(
      "the new zone is closed",
      "DELETE FROM zdc_leaf WHERE zone = :list AND node = (SELECT zoneRoot FROM zdc_zone WHERE id = :list)",
      .isImpossible),
    Case("the branch has a pointer", "INSERT INTO zdc_pointer VALUES (:inner)", .isImpossible),
    Case(
      "content is in conflict", "UPDATE zdc_operation SET baseETag = 'other' WHERE node = :inner",
      .waits(.conflictHeld)),
    Case(
      "earlier content is restored",
      "UPDATE zdc_operation SET resend = 1, kind = 3, baseETag = NULL WHERE node = :inner",
      .waits(.waitingForOperation)),
    Case(
      "a pause comes before a freeze",
      "UPDATE zdc_operation SET reason = 8 WHERE node = :top; UPDATE zdc_zone SET frozen = 'zoneRollback'",
      .waits(.conflictHeld)),
    Case(
      "a record that was not read comes before rights",
      "UPDATE zdc_zone SET ownerAccount = 1; UPDATE zdc_leaf SET pending = 1", .waits(.notPulledYet)),
    Case(
      "rights come before a conflict",
      "UPDATE zdc_zone SET ownerAccount = 1; UPDATE zdc_operation SET baseETag = 'other' WHERE node = :inner",
      .isImpossible),
  ]

  /// The rows that the cases change.
  private struct Rows {
    let user: UserID
    let home: Int64
    let list: Int64
    let parent: Int64
    let top: Int64
    let inner: Int64

    init(_ alice: TestDevice) async throws {
      user = try #require(UserID(text: alice.localUserID))
      (home, list, parent, top, inner) = try await alice.database.read { transaction in
        let top = try #require(try transaction.moves.crossings().first)
        let row = try #require(try transaction.nodes.node(id: top))
        let parent = try #require(try row.parent.flatMap { try transaction.nodes.node(id: $0) })
        let inner = try #require(try transaction.nodes.subtreeIDs(of: top).first { $0 != top })
        return (row.zone, parent.zone, parent.id, top, inner)
      }
    }

    func apply(_ sql: String, _ transaction: ZDCReadWriteTransaction) throws {
      let values = ["home": home, "list": list, "parent": parent, "top": top, "inner": inner]
      for statement in sql.split(separator: "; ") {
        let names = values.filter { statement.contains(":\($0.key)") }
        try transaction.database.execute(sql: String(statement), arguments: StatementArguments(names))
      }
    }

    func verdict(_ transaction: ZDCReadWriteTransaction) throws -> (verdict: Verdict, hasWork: Bool) {
      let zone = try #require(try transaction.zones.zone(id: home))
      let plan = CrossingPlan(user: user, zone: zone, transaction: transaction)
      return (try plan.verdict(top), try plan.hasWork)
    }
  }

  /// - Alice has moved a folder, in which a node has new content, to her shared list
  /// => each case has its verdict, and the zone has work unless the move waits
  @Test func eachCase() async throws {
    try await TestWorld.run { world in
      let alice = try await ZoneMoveTests.Moving(world).alice
      try await alice.create("/box")
      try await alice.create("/box/inner", "1")
      try await alice.sync()
      try await alice.edit("/box/inner", "2")
      try await alice.move("/box", to: "/list/box")
      let rows = try await Rows(alice)
      for row in Self.table {
        struct Undone: Error {}
        await #expect(throws: Undone.self, "\(row.testDescription)") {
          try await alice.database.write { transaction in
            try rows.apply(row.sql, transaction)
            let found = try rows.verdict(transaction)
            #expect(found.verdict == row.verdict ?? .begins(below: rows.parent), "\(row.testDescription)")
            #expect(found.hasWork == (row.verdict.map { if case .waits = $0 { false } else { true } } ?? true))
            throw Undone()
          }
        }
      }
      try await alice.sync()
    }
  }
}
