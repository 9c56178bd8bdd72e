internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

/// One pass over a data folder. Each step is a type of its own, and independent, so that one broken table
/// does not hide problems in the others.
final class IntegrityCheck {
  let db: Database
  let store: SQLiteTransaction
  let scratch: ReplayScratch
  /// Nil if large content is in an object store.
  let blobFolder: String?
  var report = CheckReport()
  /// The number of nodes that are stored below the roots of all zones; nil if the log of one is broken.
  var reachedNodes: UInt64? = 0
  private let found: (CheckFinding) -> Void
  private let progress: (CheckProgress) -> Void
  private var identities: [UserID: VerifiedIdentity?] = [:]

  init(
    _ db: Database, scratch: ReplayScratch, blobFolder: String?, found: @escaping (CheckFinding) -> Void,
    progress: @escaping (CheckProgress) -> Void
  ) {
    self.db = db
    self.scratch = scratch
    self.blobFolder = blobFolder
    self.found = found
    self.progress = progress
    store = SQLiteTransaction(db)
  }

  func run() -> CheckReport {
    step { try checkDatabase() }
    step { try AccountCheck(pass: self).checkAccounts() }
    step { try ZoneCheck(pass: self).checkZones() }
    step { try NodeCheck(pass: self).checkRecords() }
    step { try ContentCheck(pass: self).checkBlobs() }
    step { try NodeCheck(pass: self).checkReferences() }
    step { try ContentCheck(pass: self).checkFiles() }
    return report
  }

  private func step(_ body: () throws -> Void) {
    do { try body() } catch let error as DatabaseError {
      add(.database, [], "a table cannot be read: SQLite \(error.resultCode.rawValue)")
    } catch { add(.database, [], "a row or file cannot be read: \(type(of: error))") }
  }

  func add(_ kind: CheckFinding.Kind, _ fields: [CheckFinding.Field], _ detail: String) {
    let finding = CheckFinding(kind, fields, detail)
    report.add(finding)
    found(finding)
  }

  func advance(_ phase: CheckProgress.Phase, _ done: UInt64, of total: UInt64) {
    progress(CheckProgress(phase: phase, done: done, total: total))
  }

  func count(_ sql: String) throws -> UInt64 { try db.first(sql) { $0.unsigned(0) } ?? 0 }

  private func checkDatabase() throws {
    advance(.database, 0, of: 0)
    try db.each("PRAGMA integrity_check(100)", []) { row in
      let text = row.text(0)
      if text != "ok" { add(.database, [], text.split(separator: "\n").joined(separator: "; ")) }
      return true
    }
  }

  /// Returns the user's verified chain; nil if it is invalid. Cached, because a few users write many zones.
  func identity(of user: UserID) throws -> VerifiedIdentity? {
    if let known = identities[user] { return known }
    if identities.count >= 1_000 { identities.removeAll() }
    let links = try store.links(of: user)
    let identity = try? IdentityReplay.verify(try links.map { bytes in try IdentityLink(bytes) }, expected: user)
    identities[user] = .some(identity)
    return identity
  }
}

/// Signature keys from chains that the check itself has verified, not from the table that the running server uses.
struct CheckedIdentities: IdentityDirectory {
  let pass: IntegrityCheck

  func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
    try pass.identity(of: user)?.signKeys[generation]
  }
}

extension CheckFinding.Field {
  static func user(_ id: UserID) -> Self { Self("user", id.text) }
  static func tree(_ id: TreeID) -> Self { Self("tree", id.text) }
  static func node(_ id: NodeID) -> Self { Self("node", id.text) }
  static func blob(_ id: BlobID) -> Self { Self("blob", id.text) }
  static func number(_ name: String, _ value: some BinaryInteger) -> Self { Self(name, "\(value)") }

  static func zone(_ id: ZoneID) -> [Self] { [.tree(id.tree), Self("zone", id.root.text)] }
}
