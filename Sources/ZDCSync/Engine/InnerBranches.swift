internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Accepts the branches that their owner shares separately, inside of branches that the user has accepted.
actor InnerBranches {
  /// The maximum number of requests for the list of zones that the user may read.
  private static let offerPages = 10
  /// How often pointers of members other than the owner make this device ask, unless it is asked to sync: they may name
  /// branches that do not exist.
  private static let asksForMembers = 16

  private nonisolated let session: SyncSession
  private nonisolated let executor: EngineExecutor
  /// Branches that the user could not read when this device asked for them.
  private var asked: Set<ZoneID> = []
  private var askedForMembers = 0

  init(session: SyncSession, executor: EngineExecutor) {
    self.session = session
    self.executor = executor
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.unownedExecutor }

  func forget() { (asked, askedForMembers) = ([], 0) }

  /// Accepts those that the user may read, so that they are pulled with the others (G-2).
  ///
  /// A split in a zone's log is followed when it is read. The log does not name branches that were there when the zone
  /// began: their pointers do. Costs no request unless there is a pointer to a branch that this device has not asked for.
  ///
  /// - Parameter isOnRequest: Whether to ask again for branches that the user could not read before.
  func accept(isOnRequest: Bool) async {
    do {
      let branches = try await innerBranches()
      guard !branches.isEmpty, isOnRequest || isNew(in: branches) else { return }
      let readable = try await readableZones(of: Set(branches.map(\.zone)))
      for branch in branches where readable.contains(branch.zone) { try await follow(branch) }
      asked = Set(branches.map(\.zone)).subtracting(readable)
    } catch { session.events.report(error) }
  }

  private struct InnerBranch: Sendable {
    let pointer: Int64
    let zone: ZoneID
    /// Whether the branch's owner has put the pointer, or was the last to change it.
    let isOfOwner: Bool
  }

  /// Whether there is a branch to ask for that this device has not asked for yet.
  private func isNew(in branches: [InnerBranch]) -> Bool {
    let new = branches.filter { !asked.contains($0.zone) }
    guard !new.isEmpty, !new.contains(where: \.isOfOwner) else { return !new.isEmpty }
    askedForMembers += 1
    return askedForMembers <= Self.asksForMembers
  }

  private func innerBranches() async throws -> [InnerBranch] {
    try await session.database.asyncRead { [session] transaction in
      let rule = InnerBranchRule(localUser: session.localUser, transaction: transaction)
      return try transaction.nodes.pointersOfOthers(localUser: session.localUser).compactMap { row in
        guard let target = row.pointer, try rule.isInnerBranch(row) else { return nil }
        return InnerBranch(pointer: row.id, zone: target.zone, isOfOwner: row.cloud?.writer == target.owner)
      }
    }
  }

  /// Returns those zones that another device of the user has accepted, or that the server offers to the user.
  private func readableZones(of wanted: Set<ZoneID>) async throws -> Set<ZoneID> {
    var found = wanted.intersection(try await session.api.zones(since: nil).zones.map(\.zone))
    var cursor: UInt64?
    for _ in 0..<Self.offerPages where found.count < wanted.count {
      let page = try await session.api.offeredZones(after: cursor)
      found.formUnion(wanted.intersection(page.zones.map(\.zone)))
      guard let next = page.next else { break }
      cursor = next
    }
    return found
  }

  private func follow(_ branch: InnerBranch) async throws {
    try await session.api.acceptZone(branch.zone)
    try await session.database.asyncReadWrite { [session] transaction in
      try Mounting(session: session, transaction: transaction).followInnerBranch(at: branch.pointer)
    }
  }
}
