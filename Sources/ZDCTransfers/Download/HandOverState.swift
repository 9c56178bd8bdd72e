internal import ZDCClientAPI
internal import ZDCProtocol

/// The state of ``TransferHandOver``. It may be lost: the system and the tables have the rest.
struct HandOverState: Sendable {
  struct Held: Sendable {
    /// The size of the file to send.
    var bytes: Int
    /// Whether the system knows the transfer.
    var isStarted: Bool
  }

  var absence = TransferHandOver.Absence.none
  var held: [SystemTransferID: Held] = [:]
  var loading: Task<Void, Never>?
  /// The transfers whose end was reported while the list was read; nil afterwards.
  var endedEarly: Set<SystemTransferID>? = []
  /// How often each commit request was handed over in this process.
  var commits: [CommitHash: Int] = [:]
  /// Uploads in progress, and whether each has handed over what it can in this absence.
  var uploads: [TransferHandOver.UploadID: Bool] = [:]
  var stagingError: (any Error)?
  var finish: (@Sendable () async -> Void)?
  var eventsHandled: (@Sendable () -> Void)?
  var isStopped = false

  func holds(_ subject: SystemTransferID.Subject) -> Bool { held.keys.contains { $0.subject == subject } }

  func canHold(_ bytes: Int, limit: Int) -> Bool {
    held.count < TransferHandOver.mostTransfers && held.values.reduce(bytes) { $0 + $1.bytes } <= limit
  }

  /// Begins an absence, or extends it to uploads. Within one, uploads hand over more when the system has sent something.
  mutating func begin(_ next: TransferHandOver.Absence) {
    if next == .everything, absence != .everything {
      stagingError = nil
      for id in uploads.keys { uploads[id] = false }
    }
    absence = next
  }

  mutating func takeEventsHandled() -> (@Sendable () -> Void)? {
    defer { eventsHandled = nil }
    return eventsHandled
  }
}
