public import Foundation
internal import ZDCClientAPI
public import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// How a local user's sync stands, as one value; see ``ZDCSyncManager/syncStates(forLocalUserID:)``.
public struct ZDCSyncState: Sendable, Hashable {
  public enum Connection: String, Sendable, Hashable, Codable {
    /// Nothing was asked yet, or another process runs the engine.
    case unknown
    case online, offline
  }

  /// Queued operations, by what they wait for.
  public struct Pending: Sendable, Hashable {
    public var total = 0
    /// Their commit is on its way.
    public var inFlight = 0
    /// Their content is on its way, or waits for a promise of the app.
    public var uploading = 0
    /// They wait for the app: content that it did not give, conflicts, nodes that others deleted.
    public var waitingForApp = 0
    /// They are tried again by themselves after a failure: no connection, no room, refused by the server.
    public var failing = 0
  }

  public var isPulling = false
  public var isPushing = false
  /// See ``ZDCSyncManager/pausePush(forLocalUserID:andAbortUploads:)``.
  public var isPaused = false
  public var connection = Connection.unknown
  /// Whether the engine asks at intervals, because something holds the server's events back.
  public var isPolling = false
  public var pending = Pending()
  /// Trees that are neither pulled nor pushed until the user decides.
  public var frozenZones: [ZDCFrozenZone] = []
  /// How many nodes this device cannot read as they are in the cloud: see ``ZDCSyncManager/unreadableNodes(localUserID:limit:)``.
  public var unreadableNodes = 0
  /// Trees that are not up to date because the server's answers cannot be followed.
  public var stalledZones: [ZDCStalledZone] = []
  /// What failed last; nil again once a pull and a push have gone through since.
  public var lastError: ZDCSyncFailure?
  /// When a pull last went through, also of another process or before the last launch, to the minute then: what others
  /// had committed until then is here.
  public var lastSynced: Date?

  /// That of a user whose engine has done nothing yet; for previews and tests.
  public init() {}

  public var isSyncing: Bool { isPulling || isPushing }
  public var isOffline: Bool { connection == .offline }
}

/// Something that failed while syncing, and when.
public struct ZDCSyncFailure: Sendable, Hashable, CustomStringConvertible {
  public var error: any Error
  /// A stable code, such as the server's or that of a ``ZDCSecurityError``; for the app's own errors their type.
  public var code: String
  public var isSecurityError: Bool
  public var date: Date

  package init(_ error: any Error, date: Date) {
    self.error = error
    self.date = date
    isSecurityError = error is ZDCSecurityError
    code =
      switch error {
      case let error as ZDCSecurityError: error.code.rawValue
      case let error as ServerError: error.code.rawValue
      case let error as TransportError: error.code.rawValue
      default: "\(type(of: error))"
      }
  }

  public static func == (a: ZDCSyncFailure, b: ZDCSyncFailure) -> Bool { a.code == b.code && a.date == b.date }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(code)
    hasher.combine(date)
  }

  public var description: String { code }
}

extension ZDCSyncManager {
  /// How the local user's sync stands now.
  public func syncState(forLocalUserID localUserID: String) async throws -> ZDCSyncState {
    try await database.roDatabaseConnection.read { try $0.syncState(localUserID) }
  }

  /// How the local user's sync stands, now and after each change; for what an app shows of it.
  ///
  /// Equal states in a row come once. Who is slow gets the newest state, and never misses the last one. Ends when the
  /// framework is closed. For an observable object see ``ZDCSyncStatusModel``.
  public func syncStates(forLocalUserID localUserID: String) -> ZDCDatabaseValues<ZDCSyncState> {
    let connection = database.roDatabaseConnection
    return ZDCDatabaseValues {
      connection.observe(tables: [
        "zdc_operation", "zdc_zone", "zdc_security_event", "zdc_unreadable", EngineStates.table,
      ]) {
        try $0.syncState(localUserID)
      }
    }
  }
}

extension ZDCReadTransaction {
  /// - Throws: `ZDCError` with `localUserNotFound`.
  fileprivate func syncState(_ localUserID: String) throws -> ZDCSyncState {
    guard let user = try UserID(text: localUserID).flatMap({ try localUsers.user($0) }) else {
      throw ZDCError(.localUserNotFound)
    }
    let engine = context.engines.state(localUserID)
    var state = engine.shown
    state.lastSynced = try [state.lastSynced, lastSynced(localUser: user.id)].compactMap(\.self).max()
    state.isPaused = try pushPause(localUser: user.id) != nil
    state.pending = try operations.pending(localUser: user.id, paused: Set(engine.pauses.keys))
    state.frozenZones = try frozenZones(localUser: user.id)
    state.unreadableNodes = try unreadableNodeCount(localUser: user.id)
    state.stalledZones = try stalledZones(localUser: user.id)
    return state
  }

  func unreadableNodeCount(localUser: Int64) throws -> Int {
    try zones.zones(localUser: localUser).reduce(0) { try $0 + unreadable.count(zone: $1.id) }
  }

  package func frozenZones(localUser: Int64) throws -> [ZDCFrozenZone] {
    try zones.zones(localUser: localUser).compactMap { row in
      guard let code = row.frozen else { return nil }
      let event = try lastSecurityEvent(zone: row.id, code: code)
      return ZDCFrozenZone(
        zone: row.zone, trunk: row.trunk, error: code, since: Date(ms: event ?? 0), isProven: row.isProven)
    }
  }

  private func stalledZones(localUser: Int64) throws -> [ZDCStalledZone] {
    try zones.zones(localUser: localUser).compactMap { row in
      guard let code = row.doubt, row.frozen == nil else { return nil }
      let event = try lastSecurityEvent(zone: row.id, code: code)
      return ZDCStalledZone(zone: row.zone, trunk: row.trunk, error: code, since: Date(ms: event ?? 0))
    }
  }
}
