/// A single finding of a check. Its line has ids, numbers and fixed text, but no user data.
package struct CheckFinding: Sendable, Hashable, CustomStringConvertible {
  package enum Severity: String, Sendable {
    /// Acknowledged data is missing or altered.
    case damage
    /// Data that no client can request; the running server's next collection removes it.
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

/// The progress of a check.
package struct CheckProgress: Sendable, Hashable {
  package enum Phase: String, Sendable {
    case database, copy, accounts, zones, records, content, files
  }

  package var phase: Phase
  package var done: UInt64
  /// Zero if unknown.
  package var total: UInt64
}

/// The extent of a check, and the number of problems that it found.
package struct CheckReport: Sendable, Hashable {
  /// The first thousand findings; the counts cover all.
  package internal(set) var findings: [CheckFinding] = []
  package internal(set) var damage: UInt64 = 0
  package internal(set) var waste: UInt64 = 0
  package internal(set) var users: UInt64 = 0
  package internal(set) var zones: UInt64 = 0
  package internal(set) var commits: UInt64 = 0
  package internal(set) var nodes: UInt64 = 0
  package internal(set) var records: UInt64 = 0
  package internal(set) var blobs: UInt64 = 0
  /// Blobs in an object store, which the check does not read.
  package internal(set) var elsewhere: UInt64 = 0
  /// Bytes of ciphertext that were read and hashed.
  package internal(set) var contentBytes: UInt64 = 0

  /// Whether no acknowledged data is missing or altered. Waste is not damage.
  package var isClean: Bool { damage == 0 }

  static let keptFindings = 1_000

  mutating func add(_ finding: CheckFinding) {
    switch finding.severity {
    case .damage: damage += 1
    case .waste: waste += 1
    }
    if findings.count < Self.keptFindings { findings.append(finding) }
  }
}
