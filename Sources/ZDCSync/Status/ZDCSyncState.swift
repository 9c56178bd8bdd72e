public import Foundation
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// The state of a local user's sync as one value; see ``ZDCSyncManager/syncStates(forLocalUserID:)``.
///
/// ```swift
/// for try await state in session.syncManager.syncStates(forLocalUserID: user.uuid) {
///   show(["\(state.pending.total) changes wait", state.isOffline ? "offline" : "online"])
/// }
/// ```
public struct ZDCSyncState: Sendable, Hashable {
  /// Whether the server can be reached.
  public enum Connection: String, Sendable, Hashable, Codable {
    /// No request was made yet, or another process runs the engine.
    case unknown
    case online, offline
  }

  /// The numbers of queued operations, by what they wait for.
  ///
  /// ```swift
  /// let pending = try await session.syncManager.syncState(forLocalUserID: user.uuid).pending
  /// show(["\(pending.total) changes are not in the cloud yet, \(pending.waitingForApp) wait for the app"])
  /// ```
  public struct Pending: Sendable, Hashable {
    /// All queued operations.
    public var total = 0
    /// Operations whose commit is in flight.
    public var inFlight = 0
    /// Operations whose content is being uploaded, or waits for a promise of the app.
    public var uploading = 0
    /// Operations that wait for the app: missing content, conflicts, or nodes that others deleted.
    public var waitingForApp = 0
    /// Operations that are retried automatically after a failure: no connection, no space, or refused by the server.
    public var failing = 0
  }

  /// Whether a pull is running.
  public var isPulling = false
  /// Whether a push is running.
  public var isPushing = false
  /// See ``ZDCSyncManager/pausePush(forLocalUserID:andAbortUploads:)``.
  public var isPaused = false
  /// Whether the server can be reached, as far as this process knows.
  public var connection = Connection.unknown
  /// Whether the engine polls the server, because an intermediary holds back the server's events.
  public var isPolling = false
  /// The numbers of queued operations, by what they wait for.
  public var pending = Pending()
  /// Trees that are neither pulled nor pushed until the user decides.
  public var frozenZones: [ZDCFrozenZone] = []
  /// The number of nodes whose version in the cloud this device cannot read: see
  /// ``ZDCSyncManager/unreadableNodes(localUserID:limit:)``.
  ///
  /// ```swift
  /// let state = try await session.syncManager.syncState(forLocalUserID: user.uuid)
  /// if state.unreadableNodes > 0 { show(["\(state.unreadableNodes) items cannot be opened."]) }
  /// ```
  public var unreadableNodes = 0
  /// Trees that are not up to date because the server's answers cannot be followed.
  public var stalledZones: [ZDCStalledZone] = []
  /// The last failure, or nil once both a pull and a push have succeeded since.
  ///
  /// ```swift
  /// let state = try await session.syncManager.syncState(forLocalUserID: user.uuid)
  /// if let failure = state.lastError { show(["\(failure.error)"]) }
  /// ```
  public var lastError: ZDCSyncFailure?
  /// The date of the last complete pull, including pulls by other processes and earlier launches, for which it is
  /// accurate to the minute. All changes that others had committed by then are here.
  ///
  /// ```swift
  /// let state = try await session.syncManager.syncState(forLocalUserID: user.uuid)
  /// show([state.lastSynced.map { $0.formatted() } ?? "never"])
  /// ```
  public var lastSynced: Date?

  /// Creates the state of a user whose engine has done nothing yet, for previews and tests.
  public init() {}

  /// Whether a pull or a push is running.
  public var isSyncing: Bool { isPulling || isPushing }
  /// Whether the last attempt to reach the server failed.
  public var isOffline: Bool { connection == .offline }
}

/// A failure during sync, with its date.
///
/// ```swift
/// let state = try await session.syncManager.syncState(forLocalUserID: user.uuid)
/// if let failure = state.lastError { print(failure.date, failure.code) }  // the code may be logged
/// ```
public struct ZDCSyncFailure: Sendable, Hashable, CustomStringConvertible {
  /// The error. It may be an error of the app's delegate.
  public var error: any Error
  /// A stable code, such as the server's or that of a ``ZDCSecurityError``. For the app's own errors it is the type.
  public var code: String
  /// Whether the error is a ``ZDCSecurityError``.
  public var isSecurityError: Bool
  /// The time of the failure.
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

  /// Compares code and date, because errors of other types cannot be compared.
  public static func == (a: ZDCSyncFailure, b: ZDCSyncFailure) -> Bool { a.code == b.code && a.date == b.date }

  /// Hashes code and date.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(code)
    hasher.combine(date)
  }

  /// The same as ``code``.
  public var description: String { code }
}
