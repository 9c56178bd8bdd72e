internal import ZDCAccounts
internal import ZDCClientStore

/// The pending work of a user's zones, as the database has it.
struct PushSurvey: Sendable {
  private(set) var pause: PushPause?
  /// Zones with queued or in-flight operations, or with uploads that may have been cancelled.
  var zones: [Int64] = []
  /// The user's own zones whose key a removal has raised, with the key's generation.
  private(set) var raisedKeys: [Int64: UInt32] = [:]
  /// Grafted zones that were never pulled.
  private(set) var unpulled: Set<Int64> = []
  /// When this device may take over messages that another device of the user has not sent.
  private(set) var takeOver: OutgoingMessageStore.Due?

  init(_ session: SyncSession, _ transaction: ZDCReadTransaction) throws {
    let (localUser, tree) = (session.localUser, session.appTreeID)
    pause = try transaction.pushPause(localUser: localUser)
    unpulled = try transaction.grafts.unpulled(localUser: localUser, tree: tree)
    guard pause == nil else { return }
    zones = try transaction.zones.withQueue(localUser: localUser, tree: tree)
    zones += try Self.zonesToRetireKeys(session, transaction).filter { !zones.contains($0) }
    raisedKeys = try transaction.zones.raisedKeys(localUser: localUser, tree: tree)
    takeOver = try OutgoingMessageStore(transaction).next(localUser: localUser, tree: tree)
  }

  /// Returns the zones of the tree in which compromised keys are not retired yet.
  private static func zonesToRetireKeys(_ session: SyncSession, _ transaction: ZDCReadTransaction) throws -> [Int64] {
    let keys = session.keys
    guard keys.hasCompromisedKeys else { return [] }
    let zones = try transaction.zones.zones(localUser: session.localUser)
    return keys.retirements(in: zones.filter { $0.appTreeID == session.appTreeID }).map(\.id)
  }
}
