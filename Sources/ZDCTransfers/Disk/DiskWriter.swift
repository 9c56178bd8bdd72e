internal import Foundation
package import ZDCClientStore
internal import ZDCSupport

/// Changes the rows of the disk manager in a transaction. The files of removed rows are deleted after the commit.
package struct DiskWriter {
  package let transaction: ZDCReadWriteTransaction
  private let store: DiskFileStore
  private let disk: DiskState

  package init(_ transaction: ZDCReadWriteTransaction) {
    self.transaction = transaction
    store = transaction.diskFiles
    disk = transaction.context.disk
  }

  private var nowMs: UInt64 { transaction.context.clock() }

  // MARK: Storing

  /// Stores a file, or its absence, in place of the owner's previous one.
  ///
  /// - Returns: false if the file is not kept because the cache is too small. The previous one is removed either way,
  ///   because it is outdated.
  package func put(_ row: DiskFileRow, node: Int64?) throws -> Bool {
    var row = row
    try writeUses()
    try removeExpired(limit: 64)
    row.used = disk.nextUse(nowMs: nowMs)
    row.expiresMs = row.isPersistent ? nil : expiry(row)
    note(row.owner)
    guard row.isPersistent || fits(row) else {
      try deleteRow(of: row.owner)
      if let file = row.file { try store.addGarbage(file.name) }
      return false
    }
    try store.put(row, node: node)
    if !row.isPersistent { try trim(row.owner.kind) }
    return true
  }

  private func fits(_ row: DiskFileRow) -> Bool {
    let maximum = disk.limits.maximum[row.owner.kind] ?? 0
    return maximum > 0 && (row.file?.size ?? 0) <= maximum
  }

  private func expiry(_ row: DiskFileRow) -> UInt64? {
    row.lifetimeMs.map { nowMs.addingReportingOverflow($0).partialValue }
  }

  // MARK: Changes

  package func delete(_ owner: DiskOwner) throws {
    if try deleteRow(of: owner) { note(owner) }
  }

  @discardableResult
  private func deleteRow(of owner: DiskOwner) throws -> Bool {
    guard let row = try store.row(owner) else { return false }
    try store.delete(id: row.id)
    return true
  }

  /// - Returns: false if there is no entry.
  func setPersistent(_ isPersistent: Bool, _ owner: DiskOwner) throws -> Bool {
    guard var row = try store.row(owner), !row.isExpired(nowMs: nowMs) else { return false }
    guard row.isPersistent != isPersistent else { return true }
    row.isPersistent = isPersistent
    if !isPersistent { row.afterUpload = .nothing }
    try place(row)
    return true
  }

  private func place(_ row: DiskFileRow) throws {
    var row = row
    row.used = disk.nextUse(nowMs: nowMs)
    row.expiresMs = row.isPersistent ? nil : expiry(row)
    note(row.owner)
    guard row.isPersistent || fits(row) else { return try store.delete(id: row.id) }
    try store.updatePlace(row)
    if !row.isPersistent { try trim(row.owner.kind) }
  }

  /// Moves files that waited for the node's uploads into the cache, or deletes them. Called when all queued puts of the
  /// node are finished or abandoned.
  package func uploadsFinished(node: Int64) throws {
    for var row in try store.waitingForUpload(node: node) {
      if row.afterUpload == .delete {
        try store.delete(id: row.id)
        note(row.owner)
      } else {
        row.isPersistent = false
        row.afterUpload = .nothing
        try place(row)
      }
    }
  }

  // MARK: Limits

  /// Removes the least recently used files until the rest is within the limit.
  package func trim(_ kind: DiskKind) throws {
    let maximum = disk.limits.maximum[kind] ?? 0
    var total = try store.storageSize(kind, isPersistent: false)
    while total > maximum {
      let candidates = try store.leastUsed(kind, limit: 64)
      guard !candidates.isEmpty else { return }
      for candidate in candidates where total > maximum {
        try remove(candidate)
        total -= min(total, candidate.size)
      }
    }
  }

  func trimAll() throws {
    try writeUses()
    for kind in DiskKind.allCases { try trim(kind) }
  }

  /// - Returns: the number of files removed; if it is `limit`, there may be more.
  @discardableResult
  package func removeExpired(limit: Int) throws -> Int {
    let expired = try store.expired(nowMs: nowMs, limit: limit)
    for candidate in expired { try remove(candidate) }
    return expired.count
  }

  private func remove(_ candidate: DiskFileStore.Candidate) throws {
    try store.delete(id: candidate.id)
    note(DiskOwner(kind: candidate.kind, id: candidate.owner))
  }

  func writeUses() throws {
    let uses = disk.takeUses()
    if !uses.isEmpty { try store.setUses(uses) }
  }

  // MARK: Notifications

  private func note(_ owner: DiskOwner) {
    transaction.cached {
      let log = DiskChangeLog()
      transaction.afterCommit { [disk] in disk.announce(log.changes.withLock { $0 }) }
      return log
    }.changes.withLock { $0.insert(owner) }
  }
}

/// The changes of one transaction.
private final class DiskChangeLog: Sendable {
  let changes = Locked(ZDCDiskManagerChanges())
}
