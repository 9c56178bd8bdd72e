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
    case .failure: "not all of it could be done; what was left out is named"
    case .usage: "wrong command line"
    case .data: "bad data: wrong words, a damaged database or key file"
    case .noInput: "the named file or node does not exist"
    case .unavailable: "the server cannot be reached"
    case .software: "an error inside zdc"
    case .cannotCreate: "a file, folder or account cannot be created"
    case .tryAgain: "not now: changes are still queued, or somebody else is at work"
    case .security: "what the server sent does not verify"
    case .noPermission: "access refused: file permissions, pass-phrase or account"
    case .configuration: "the profile, or a version, does not fit"
    case .brokenPipe: "nobody reads the output any more"
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

/// Something that ends a command with one line, perhaps a hint, and an exit code.
///
/// Unlike errors of the framework it may name what its user typed.
package struct CommandError: Error, Sendable {
  package var status: ExitStatus
  /// For programs: stable, one word.
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

/// The report was printed already; only the exit code is left to give.
package struct SilentExit: Error, Sendable {
  package var status: ExitStatus

  package init(_ status: ExitStatus) {
    self.status = status
  }
}
