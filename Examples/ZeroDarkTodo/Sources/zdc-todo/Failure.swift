import Foundation
import TodoKit
import ZeroDarkCloud

/// The exit codes. They are the same as those of `zdc`.
enum ExitStatus: Int32, CaseIterable {
  case success = 0
  case failure = 1
  case usage = 64
  case data = 65
  case noInput = 66
  case unavailable = 69
  case software = 70
  case cannotCreate = 73
  case tryAgain = 75
  case security = 76
  case noPermission = 77
  case configuration = 78

  private var meaning: String {
    switch self {
    case .success: "done"
    case .failure: "partly done: some data could not be read"
    case .usage: "wrong command line"
    case .data: "bad data: wrong words, a damaged file or picture"
    case .noInput: "the named list, task, user or file does not exist"
    case .unavailable: "the server cannot be reached, or the port is in use"
    case .software: "internal error"
    case .cannotCreate: "a file cannot be created"
    case .tryAgain: "temporary failure: changes are still queued"
    case .security: "data from the server failed verification"
    case .noPermission: "access denied"
    case .configuration: "there is no account on this device, or no server is set"
    }
  }

  static let help = "EXIT CODES\n" + allCases.map { "  \($0.rawValue)\t\($0.meaning)" }.joined(separator: "\n")
}

/// An error with its exit code, for the output of a command.
struct Failure: Error {
  var status: ExitStatus
  /// A stable word for programs.
  var code: String
  var message: String

  init(_ status: ExitStatus, _ code: String, _ message: String) {
    self.status = status
    self.code = code
    self.message = message
  }

  init(_ error: any Error) {
    switch error {
    case let failure as Failure: self = failure
    case let error as ZDCError: self.init(Self.status(error.code), error.code.description, error.description)
    case let error as ZDCSecurityError: self.init(.security, error.code.description, Self.text(error))
    case let error as ZDCServerError: self.init(Self.status(error), error.code.description, "\(error)")
    case let error as ZDCTransportError: self.init(.unavailable, "unavailable", "\(error)")
    case let error as ZDCCloudError: self.init(Self.status(error.code), error.code.description, Self.text(error))
    case let error as CocoaError where error.isFileError:
      self.init(Self.status(error.code), "file", error.localizedDescription)
    default: self.init(.software, "internal", "\(error)")
    }
  }

  private static func status(_ code: ZDCError.Code) -> ExitStatus {
    switch code {
    case .nodeNotFound, .noContent, .userNotFound, .localUserNotFound: .noInput
    case .invalidWords, .corruptDatabase, .sectionTooLarge: .data
    case .changesQueued, .databaseBusy, .syncedElsewhere: .tryAgain
    case .accountNotFound, .otherAccount: .noPermission
    case .invalidServerURL, .insecureServerURL, .invalidParameter: .usage
    case .diskFull, .fileFailure: .cannotCreate
    default: .software
    }
  }

  private static func status(_ code: ZDCCloudError.Code) -> ExitStatus {
    switch code {
    case .notAllowed: .noPermission
    case .unknownUser: .noInput
    default: .usage
    }
  }

  private static func text(_ error: ZDCSecurityError) -> String {
    guard error.code == .identityChangedNeedsAcceptance else { return "\(error)" }
    return
      "this person has new words since you verified them; compare the safety number on their page, and accept the words"
  }

  private static func text(_ error: ZDCCloudError) -> String {
    switch error.code {
    case .notAllowed: "the list belongs to another user, who does not allow that"
    default: "\(error)"
    }
  }

  private static func status(_ error: ZDCServerError) -> ExitStatus {
    switch error.code {
    case .unauthorized, .forbidden, .registrationClosed, .inviteRequired, .accountClosed, .accountSuspended:
      .noPermission
    case .notFound, .gone, .blobGone: .noInput
    case .limitExceeded: .data
    case .tooManyRequests, .zoneBusy, .shuttingDown, .quotaExceeded, .storageFull: .tryAgain
    default: error.retryable ? .tryAgain : error.security != nil ? .security : .software
    }
  }

  private static func status(_ code: CocoaError.Code) -> ExitStatus {
    switch code {
    case .fileReadNoPermission: .noPermission
    default: code.rawValue >= CocoaError.Code.fileWriteUnknown.rawValue ? .cannotCreate : .noInput
    }
  }

  /// The error as a JSON object.
  func json() throws -> String {
    try Output.json(["error": Body(code: code, exit: status.rawValue, message: message)])
  }

  private struct Body: Encodable {
    var code: String
    var exit: Int32
    var message: String
  }
}

extension People {
  /// Like ``setOwnHandle(_:)``, with errors for display.
  func chooseHandle(_ handle: String) async throws {
    do { try await setOwnHandle(handle) } catch let error as ZDCServerError where error.code == .handleTaken {
      throw Failure(.cannotCreate, "handleTaken", "Another person has this handle. Choose another one.")
    } catch let error as ZDCError where error.code == .invalidParameter {
      throw Failure(
        .usage, "noHandle", "A handle has 3 to 32 letters (a to z), digits, and single separators (. _ -).")
    }
  }
}
