internal import Crypto
internal import Foundation
internal import ZDCProtocol
internal import ZDCServer

/// Claims on uploads and on the upkeep, as advisory locks of one connection: they end with the process.
///
/// If the connection is lost, its claims are lost too, while the requests that have them continue. Then two requests may
/// write one part: the part that counts is the one whose hash was stored last, and the upload's root is compared when it
/// ends.
final class SharedClaims: Sendable {
  private let own = BlobClaims()
  private let pool: ConnectionPool

  init(connect: @escaping @Sendable () throws -> PostgresConnection) {
    pool = ConnectionPool(count: 1, connect)
  }

  /// An advisory lock knows no difference between two requests of one process, so these exclude each other in memory.
  func claim(part: Int, of blob: BlobID) async -> Bool {
    guard own.begin(part: part, of: blob) else { return false }
    if await take(.shared(Self.key(of: blob)), .exclusive(Self.key(of: blob, part: part))) { return true }
    own.end(part: part, of: blob)
    return false
  }

  func release(part: Int, of blob: BlobID) async {
    await giveUp([.shared(Self.key(of: blob)), .exclusive(Self.key(of: blob, part: part))])
    own.end(part: part, of: blob)
  }

  func claimRemoval(of blob: BlobID) async -> Bool {
    guard own.beginRemoval(of: blob) else { return false }
    if await take(.exclusive(Self.key(of: blob))) { return true }
    own.endRemoval(of: blob)
    return false
  }

  func releaseRemoval(of blob: BlobID) async {
    await giveUp([.exclusive(Self.key(of: blob))])
    own.endRemoval(of: blob)
  }

  func claimUpkeep() async -> Bool { await take(.exclusive(Self.upkeep)) }

  /// Gives up all claims.
  func end() async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async { [pool] in
        pool.close()
        continuation.resume()
      }
    }
  }

  // MARK: - Locks

  private enum Lock {
    case shared(Int64)
    case exclusive(Int64)

    var take: (sql: String, key: Int64) {
      switch self {
      case .shared(let key): ("SELECT pg_try_advisory_lock_shared($1)", key)
      case .exclusive(let key): ("SELECT pg_try_advisory_lock($1)", key)
      }
    }

    var giveUp: (sql: String, key: Int64) {
      switch self {
      case .shared(let key): ("SELECT pg_advisory_unlock_shared($1)", key)
      case .exclusive(let key): ("SELECT pg_advisory_unlock($1)", key)
      }
    }
  }

  /// "ZDCR".
  private static let upkeep: Int64 = 0x5a44_4352

  private static func key(of blob: BlobID, part: Int? = nil) -> Int64 {
    let text = "zdc upload \(blob.text) \(part.map(String.init) ?? "")"
    return SHA256.hash(data: Array(text.utf8)).prefix(8).reduce(0) { $0 << 8 | Int64($1) }
  }

  /// Takes all of these or none. A database that does not answer grants nothing: the client asks again.
  private func take(_ locks: Lock...) async -> Bool {
    await withCheckedContinuation { continuation in
      pool.run { connection in
        do {
          let db = try connection.get()
          for (index, lock) in locks.enumerated() {
            guard try db.first(lock.take.sql, .int(lock.take.key), row: { $0.int(0) == 1 }) != true else { continue }
            Self.giveUp(Array(locks[..<index]), db)
            return continuation.resume(returning: false)
          }
          continuation.resume(returning: true)
        } catch { continuation.resume(returning: false) }
      }
    }
  }

  private func giveUp(_ locks: [Lock]) async {
    await withCheckedContinuation { continuation in
      pool.run { connection in
        if case .success(let db) = connection { Self.giveUp(locks, db) }
        continuation.resume()
      }
    }
  }

  /// A connection that fails here is lost, and its locks with it.
  private static func giveUp(_ locks: [Lock], _ db: PostgresConnection) {
    for lock in locks { db.enqueue(lock.giveUp.sql, .int(lock.giveUp.key)) }
    try? db.flush()
  }
}
