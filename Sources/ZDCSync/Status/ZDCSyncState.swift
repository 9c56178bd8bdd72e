public import Foundation
internal import ZDCClientAPI
internal import ZDCClientStore
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
