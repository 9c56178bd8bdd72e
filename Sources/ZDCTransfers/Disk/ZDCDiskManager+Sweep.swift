internal import Foundation
internal import ZDCClientStore

// Background work. It runs on the disk manager's queue, in pieces, and ends early when the manager stops.

extension ZDCDiskManager {
  private static let piece = 256

  /// Cleans up after a launch: removes expired files, and files that a killed process left.
  func sweep() throws {
    disk.continueUses(after: try database.read { try $0.diskFiles.lastUse() })
    try removeExpired()
    try removeUninserted()
    try collectGarbage()
    try removeOrphans()
  }

  /// Removes files whose time in the cache is over. Runs automatically after a launch and with every import.
  package func removeExpired() throws {
    let now = nowMs
    while !isStopped, try database.read({ try !$0.diskFiles.expired(nowMs: now, limit: 1).isEmpty }) {
      // None removed: the clock was set back in the meantime.
      guard try database.write({ try DiskWriter($0).removeExpired(limit: Self.piece) }) > 0 else { return }
    }
  }

  /// Removes imports whose node was not inserted within a day.
  private func removeUninserted() throws {
    let day: UInt64 = 24 * 3_600 * 1_000
    guard nowMs > day, try database.read({ try $0.diskFiles.hasUninserted() }) else { return }
    let limit = nowMs - day
    while !isStopped {
      let removed = try database.write { try $0.diskFiles.removeUninserted(usedBefore: limit, limit: Self.piece) }
      guard removed == Self.piece else { return }
    }
  }

  package func trim() throws {
    try database.write { try DiskWriter($0).trimAll() }
  }

  func flushUses() throws {
    guard disk.hasUses else { return }
    try database.write { try DiskWriter($0).writeUses() }
  }

  /// Deletes the files of removed rows. A file that is being read stays until it is released.
  package func collectGarbage() throws {
    var last = ""
    while !isStopped {
      let names = try database.read { try $0.diskFiles.garbage(after: last, limit: Self.piece) }
      guard let end = names.last else { return }
      last = end
      let gone = names.filter { holds.remove($0) }
      guard !gone.isEmpty else { continue }
      try onStep(.fileDeleted)
      try database.write { try $0.diskFiles.removeGarbage(gone) }
      try onStep(.garbageRemoved)
    }
  }

  /// Deletes files without a row: the process that wrote them ended before it could commit.
  ///
  /// The order matters: if a writer does not hold its file at the check, any commit of its row came before the table is
  /// read.
  private func removeOrphans() throws {
    guard FileManager.default.fileExists(atPath: folder.url.path) else { return }
    try folder.forEachName(inPiecesOf: Self.piece) { names in
      guard !isStopped else { return }
      let free = names.filter(holds.isFree)
      for orphan in try database.read({ try $0.diskFiles.unknown(among: free) }) { _ = holds.remove(orphan) }
    }
  }
}
