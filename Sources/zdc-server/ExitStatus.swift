import ArgumentParser
import Foundation
import ZDCServerSQLite

/// The exit codes, modeled on sysexits(3).
enum ExitStatus: Int32 {
  case damageFound = 1
  case usage = 64
  case damagedData = 65
  case noInput = 66
  case unavailable = 69
  case software = 70
  case cannotCreate = 73
  case noPermission = 77

  static let help = """
    EXIT CODES
      0   stopped by a signal; check and migrate: no damage found
      1   check and migrate: damage found
      64  wrong command line
      65  the database or a TLS file is damaged, or a newer server wrote the database; migrate: the source has changed
      66  a file or bucket named on the command line does not exist; check and migrate: the data folder does not exist
      69  the address, the data folder or the bucket is in use, or the object store does not answer
      70  the server failed
      73  the data folder cannot be created; migrate: the destination is not empty; no space is left
      77  no permission, or the object store refuses the key
    """

  var code: ExitCode { ExitCode(rawValue) }
}

/// An error that ends the program with one line and an exit code.
struct Failure: Error {
  var status: ExitStatus
  var message: String
  var hint: String?

  init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = message
    self.hint = hint
  }

  init(_ error: StoreOpenError) {
    message = error.description
    switch error.reason {
    case .damaged: (status, hint) = (.damagedData, "restore the folder from a backup, or start with an empty one")
    case .newer: (status, hint) = (.damagedData, "run the newer version of zdc-server")
    case .inUse: (status, hint) = (.unavailable, "stop the other server, or choose another --data folder")
    case .cannotCreate: (status, hint) = (.cannotCreate, nil)
    case .full: (status, hint) = (.cannotCreate, "make room, or name another folder; TMPDIR is for temporary files")
    case .missing: (status, hint) = (.noInput, "--data names the folder that zdc-server serve was given")
    case .missingDeletions:
      (status, hint) = (.noInput, "it is at the path of serve --deletions, or in the server's data folder")
    case .damagedDeletions: (status, hint) = (.damagedData, "give another copy of the list, or remove the damaged line")
    case .noPermission: (status, hint) = (.noPermission, "the user who runs the server must own the folder")
    case .other: (status, hint) = (.software, nil)
    }
  }

  func report() {
    var text = "zdc-server: error: \(message)\n"
    if let hint { text += "hint: \(hint)\n" }
    FileHandle.standardError.write(Data(text.utf8))
  }

  /// Describes why the server could not start or ended. The network layer's errors are recognized by the errno in their
  /// text.
  init(starting error: any Error, address: String) {
    let text = "\(error)"
    let number = text.split(separator: "errno: ").dropFirst().last.flatMap { Int($0.prefix { $0.isNumber }) }
    switch number {
    case 98, 48: self.init(.unavailable, "\(address) is in use", hint: "choose another --listen address")
    case 99, 49: self.init(.unavailable, "\(address) is not an address of this machine")
    case 13:
      self.init(.noPermission, "no permission to listen on \(address)", hint: "ports below 1024 need a privilege")
    case nil where text.hasPrefix("failedToLoad"):
      self.init(.damagedData, "the TLS files do not hold a certificate and its key in PEM form")
    default: self.init(.software, "the server ended: \(text)")
    }
  }
}
