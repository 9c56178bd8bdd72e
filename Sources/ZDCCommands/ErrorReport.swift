internal import ZDCProtocol
internal import ZeroDarkCloud

/// The message and exit status of a failed command: the only place where errors become codes.
package struct ErrorReport: Sendable, Hashable {
  package var status: ExitStatus
  /// A stable code for programs.
  package var code: String
  package var message: String
  package var hint: String?

  package init(_ error: any Error) {
    switch error {
    case let error as CommandError:
      self.init(error.status, error.code, error.message, error.hint)
    case let error as ZDCError: self.init(error)
    case let error as ZDCSecurityError: self.init(error)
    case let error as ServerError: self.init(error)
    case let error as TransportError: self.init(error)
    case let error as ZDCCloudError: self.init(error)
    case is CancellationError:
      self.init(
        .tryAgain, "interrupted", "interrupted", "run it again; queued changes stay queued, and zdc sync sends them")
    default:
      self.init(.software, "internal", "an error inside zdc: \(type(of: error))", "run it again with --verbose")
    }
  }

  private init(_ status: ExitStatus, _ code: String, _ message: String, _ hint: String?) {
    self.status = status
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// The text for a terminal: `zdc: …`, and optionally `hint: …`.
  package var text: String {
    hint.map { "zdc: \(message)\nhint: \($0)" } ?? "zdc: \(message)"
  }

  /// The JSON object for `--json`, on standard error: `{"error":{"code","exit","hint"?,"message"}}`.
  package var json: JSONForm { JSONForm(error: .init(code: code, exit: status.rawValue, hint: hint, message: message)) }

  package struct JSONForm: Encodable, Sendable {
    package struct Body: Encodable, Sendable {
      var code: String
      var exit: Int32
      var hint: String?
      var message: String
    }

    var error: Body
  }
}

// MARK: This device

extension ErrorReport {
  private init(_ error: ZDCError) {
    self.init(Self.status(error.code), error.code.rawValue, error.description, Self.hint(error.code))
  }

  private static func status(_ code: ZDCError.Code) -> ExitStatus {
    switch code.name {
    case .invalidTreeID, .invalidServerURL, .insecureServerURL, .invalidDatabaseName, .invalidParameter,
      .invalidLink:
      .usage
    case .corruptDatabase, .foreignDatabase, .corruptKeyFile, .invalidWords, .objectNotDecodable: .data
    case .nodeNotFound, .noContent, .deviceNotFound, .linkExpired, .userNotFound: .noInput
    case .databaseNotWritable, .diskFull, .fileFailure: .cannotCreate
    case .databaseBusy, .syncedElsewhere, .changesQueued, .nodeNotUploaded, .fileModifiedDuringRead,
      .transactionRolledBack:
      .tryAgain
    case .wrongDatabaseKey, .keyFileExposed, .passphraseRequired, .wrongPassphrase, .invalidPassphrase,
      .accountNotFound, .otherAccount:
      .noPermission
    case .databaseTooNew, .keyNotConfigured, .keyAlreadyConfigured, .keyMissing, .keyStoreFailure, .localUserNotFound,
      .localUserNotReady:
      .configuration
    case .downloadFailed, .noDataFromApp: .failure
    case .databaseLocked, .databaseAlreadyUnlocked, .invalidEncryptionKey, .databaseFailure, .readOnlyConnection,
      .reservedName, .duplicateMigration, .collectionNotRegistered, .collectionTypeMismatch, .objectNotEncodable,
      .sectionTooLarge, .cryptographyFailure:
      .software
    }
  }

  private static func hint(_ code: ZDCError.Code) -> String? {
    switch code {
    case .passphraseRequired: "give it with --passphrase-file FILE"
    case .invalidWords: "type all 24 words, in order; each is on the list of BIP 39"
    case .localUserNotFound, .keyNotConfigured: "begin with: zdc account create, or zdc account login"
    case .localUserNotReady: "run zdc account create again; it resumes where it stopped"
    case .databaseTooNew: "update zdc"
    default: nil
    }
  }

  private init(_ error: ZDCCloudError) {
    let status: ExitStatus =
      switch error.code.name {
      case .missingParent: .noInput
      case .unknownUser: .noInput
      case .conflict, .alreadyGrafted: .cannotCreate
      case .notAllowed: .noPermission
      case .invalidParameter, .unsupportedShare, .missingReceiver: .usage
      }
    let path = error.path.map { ShownName.text($0.fullPath()) + ": " } ?? ""
    self.init(status, error.code.rawValue, path + Self.words(error), nil)
  }

  private static func words(_ error: ZDCCloudError) -> String {
    guard error.detail.isEmpty else { return error.detail }
    switch error.code.name {
    case .missingParent: return "its folder is not in the tree"
    case .conflict: return "the name is taken"
    case .unknownUser: return "this device does not know the user"
    case .notAllowed: return "the access list of the tree does not allow it"
    case .missingReceiver: return "the message has no recipient"
    case .alreadyGrafted: return "the branch is in the tree already"
    case .invalidParameter, .unsupportedShare: return "this is not possible for this node"
    }
  }
}

// MARK: The server

extension ErrorReport {
  private init(_ error: ZDCSecurityError) {
    let hint =
      error.code == .unsafeExportName
      ? nil : "none of it was applied; if this persists, do not trust this server, and keep your words safe"
    self.init(
      .security, error.code.rawValue, "data from the server failed verification: \(error.description)", hint)
  }

  private init(_ error: ServerError) {
    let (status, hint) = Self.rule(error.code)
    var message = "the server says \(error.code.rawValue): \(ShownName.text(error.message))"
    if let quota = error.quota {
      message += " (\(quota.used) of \(quota.limit) bytes are taken, \(quota.needed) more are needed)"
    }
    if let milliseconds = error.retryAfterMs { message += " (retry after \((milliseconds + 999) / 1_000) s)" }
    self.init(status, error.code.rawValue, message, hint)
  }

  private static func rule(_ code: ServerError.Code) -> (ExitStatus, String?) {
    switch code.name {
    case .unauthorized:
      (.noPermission, "log in again with zdc account login; if the words were changed, with the new ones")
    case .forbidden: (.noPermission, nil)
    case .accountClosed: (.noPermission, "it can only be read: zdc get home:/ copies everything")
    case .accountSuspended: (.noPermission, "nothing is lost: ask the server's operator, then run zdc sync")
    case .registrationClosed: (.noPermission, "ask the server's operator")
    case .inviteRequired: (.noPermission, "ask the server's operator for a code and give it with --invite-file")
    case .notFound, .blobGone:
      (.noInput, "it was replaced or removed, or the server lost it: run zdc sync, then try again")
    case .gone:
      (.tryAgain, "it was replaced too long ago: run zdc sync again; if that does not help, ask the server's operator")
    case .tooManyRequests, .zoneBusy, .shuttingDown, .headMismatch, .conflict, .zoneExists:
      (.tryAgain, "try again later")
    case .quotaExceeded, .storageFull: (.tryAgain, "queued changes stay queued; zdc sync sends them when there is room")
    case .handleTaken: (.cannotCreate, "choose another handle")
    case .limitExceeded: (.failure, "it is too large for the server, or for a proxy in front of it")
    case .unsupportedProtocol: (.configuration, "server and zdc are of different versions: update the older one")
    case .refused: (.security, nil)
    case .invalidRequest, .methodNotAllowed, .rangeNotSatisfiable, .blobIncomplete:
      (.failure, "the server refused a valid request; see its log, and run zdc sync to try again")
    case .internalError: (.tryAgain, "check the server's log")
    }
  }

  private init(_ error: TransportError) {
    let (status, hint): (ExitStatus, String?) =
      switch error.code.name {
      case .invalidAddress, .insecureAddress: (.usage, nil)
      case .tls:
        (.noPermission, "name the server's own authority with --ca-file FILE; does the server speak https there?")
      case .badAnswer: (.security, "is it the address of a zdc-server?")
      case .proxyAnswered where error.isBodyRefused:
        (.unavailable, "nothing is lost: zdc sync sends what is queued once the proxy lets it through")
      case .proxyAnswered:
        (.unavailable, "nothing is lost; zdc sync tries again")
      case .offline, .unknownHost, .refused, .timeout, .tooSlow, .cut:
        (.unavailable, "nothing is lost; changes can be queued with --queue and sent later by zdc sync")
      }
    self.init(status, error.code.rawValue, error.description, hint)
  }
}
