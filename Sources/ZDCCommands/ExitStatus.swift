/// The exit codes of `zdc`, after sysexits(3). `zdc --help` prints this table.
package enum ExitStatus: Int32, Sendable, CaseIterable {
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
  case brokenPipe = 141

  package var meaning: String {
    switch self {
    case .success: "done"
    case .failure: "partly done; the output names what was left out"
    case .usage: "wrong command line"
    case .data: "bad data: wrong words, a damaged database or key file"
    case .noInput: "the named file or node does not exist"
    case .unavailable: "the server cannot be reached"
    case .software: "internal error in zdc"
    case .cannotCreate: "a file, folder or account cannot be created"
    case .tryAgain: "temporary failure: changes are still queued, or another process is syncing"
    case .security: "data from the server failed verification"
    case .noPermission: "access denied: file permissions, passphrase or account"
    case .configuration: "the profile is invalid, or a version does not match"
    case .brokenPipe: "the output pipe was closed"
    }
  }

  package static let help: String = {
    let rows = allCases.map { status in
      let number = "\(status.rawValue)"
      return "  \(number)\(String(repeating: " ", count: 4 - number.count))\(status.meaning)"
    }
    return "EXIT CODES\n" + rows.joined(separator: "\n")
  }()
}

/// An error that ends a command with one line, an optional hint, and an exit code.
///
/// Unlike the framework's errors, it may name what the user typed.
package struct CommandError: Error, Sendable {
  package var status: ExitStatus
  /// A stable one-word code for programs.
  package var code: String
  package var message: String
  package var hint: String?

  package init(_ status: ExitStatus, _ code: String, _ message: String, hint: String? = nil) {
    self.status = status
    self.code = code
    self.message = message
    self.hint = hint
  }
}

/// The report has already been printed; only the exit code remains.
package struct SilentExit: Error, Sendable {
  package var status: ExitStatus

  package init(_ status: ExitStatus) {
    self.status = status
  }
}
