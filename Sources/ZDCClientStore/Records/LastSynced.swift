package import Foundation
internal import GRDB

/// When a local user's pull last went through: a launch later, and in other processes, that is still of interest.
package enum LastSynced {
  /// How exact the stored time is: a pull that brings nothing is no reason for a write.
  package static let gridMs: UInt64 = 60_000

  package static func key(_ localUser: Int64) -> String { "lastSynced.\(localUser)" }
}

extension ZDCReadTransaction {
  package func lastSynced(localUser: Int64) throws -> Date? {
    let statement = try database.cachedStatement(sql: "SELECT value FROM zdc_meta WHERE key = ?")
    let value = try Row.fetchOne(statement, arguments: [LastSynced.key(localUser)])?.bytes(0)
    guard let value, value.count == 8 else { return nil }
    return Date(ms: value.reduce(0) { $0 << 8 | UInt64($1) })
  }
}

extension ZDCReadWriteTransaction {
  package func setLastSynced(ms: UInt64, localUser: Int64) throws {
    let bytes = (0..<8).map { UInt8(truncatingIfNeeded: ms >> (56 - 8 * $0)) }
    try database.execute(
      sql: "INSERT OR REPLACE INTO zdc_meta (key, value) VALUES (?, ?)",
      arguments: [LastSynced.key(localUser), Data(bytes)])
  }
}
