/// One thing that a check found. Its line holds ids, numbers and our own words, nothing of a user's.
package struct CheckFinding: Sendable, Hashable, CustomStringConvertible {
  package enum Severity: String, Sendable {
    /// Something that was acknowledged is gone or altered.
    case damage
    /// Something that nobody can ask for; the next collection of the running server removes it.
    case waste
  }

  package enum Kind: String, Sendable, CaseIterable {
    /// SQLite's own integrity check, or a statement that fails.
    case database
    case identityChain, account, tree
    case zoneLog, zoneHead, accessList, grant
    case node
    case record, recordMissing
    case content, contentMissing
    case blobFile, blobFileMissing
    case upload
    case usage
    case orphanFile
  }

  package struct Field: Sendable, Hashable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  package var kind: Kind
  package var fields: [Field]
  package var detail: String

  package init(_ kind: Kind, _ fields: [Field] = [], _ detail: String) {
    self.kind = kind
    self.fields = fields
    self.detail = detail
  }

  package var severity: Severity { kind == .orphanFile ? .waste : .damage }

  package var description: String {
    let named = fields.map { "\($0.name)=\($0.value)" }
    return (["\(severity.rawValue)", kind.rawValue] + named).joined(separator: " ") + ": \(detail)"
  }
}

/// How far a check is.
package struct CheckProgress: Sendable, Hashable {
  package enum Phase: String, Sendable {
    case database, accounts, zones, records, content, files
  }

  package var phase: Phase
  package var done: UInt64
  /// Zero if it is not known.
  package var total: UInt64
}

/// What a check went through, and how much was wrong.
package struct CheckReport: Sendable, Hashable {
  /// The first thousand; the counts are of all.
  package internal(set) var findings: [CheckFinding] = []
  package internal(set) var damage: UInt64 = 0
  package internal(set) var waste: UInt64 = 0
  package internal(set) var users: UInt64 = 0
  package internal(set) var zones: UInt64 = 0
  package internal(set) var commits: UInt64 = 0
  package internal(set) var nodes: UInt64 = 0
  package internal(set) var records: UInt64 = 0
  package internal(set) var blobs: UInt64 = 0
  /// Ciphertext that was read and hashed.
  package internal(set) var contentBytes: UInt64 = 0

  /// Nothing that was acknowledged is missing or altered. Waste is not damage.
  package var isClean: Bool { damage == 0 }

  static let keptFindings = 1_000
}
