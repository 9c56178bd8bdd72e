internal import Crypto
internal import ZDCProtocol

/// The transactions that a list of zones has seen, as PostgreSQL writes a snapshot: `xmin:xmax:xid,xid…`.
///
/// A change is in the next list if its transaction was not finished when this one was read. So a list misses no change,
/// whatever the order in which transactions end.
struct Snapshot: Hashable {
  /// All transactions below have ended.
  let xmin: UInt64
  /// No transaction from this one on had begun.
  let xmax: UInt64
  /// Transactions in between that had not ended.
  let running: [UInt64]

  /// A snapshot that has seen nothing.
  static let none = Snapshot(xmin: 1, xmax: 1, running: [])

  /// With more running transactions, the position forgets what it has seen beyond the oldest one, and the next list
  /// repeats it.
  private static let mostRunning = 32

  init(xmin: UInt64, xmax: UInt64, running: [UInt64]) {
    self.xmin = xmin
    self.xmax = running.count > Self.mostRunning ? xmin : xmax
    self.running = running.count > Self.mostRunning ? [] : running
  }

  init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 3, let xmin = UInt64(parts[0]), let xmax = UInt64(parts[1]), 0 < xmin, xmin <= xmax else {
      return nil
    }
    let running = parts[2].split(separator: ",").map { UInt64($0) }
    guard running.allSatisfy({ $0.map { xmin <= $0 && $0 < xmax } ?? false }) else { return nil }
    self.init(xmin: xmin, xmax: xmax, running: running.compactMap { $0 })
  }

  var text: String { "\(xmin):\(xmax):\(running.map { "\($0)" }.joined(separator: ","))" }

  func hasSeen(_ transaction: UInt64) -> Bool { transaction < xmax && !running.contains(transaction) }
}

/// The sealed form of a snapshot, which is a user's feed position.
///
/// In the clear, the numbers would tell each client how many transactions all users make. The key belongs to one era of
/// the database: PostgreSQL gives transaction numbers again after a crash, and then has a new key.
struct SnapshotSeal {
  private static let tagBytes = 16
  private let key: SymmetricKey
  private let user: UserID

  init(key: [UInt8], user: UserID) {
    self.key = SymmetricKey(data: key)
    self.user = user
  }

  func seal(_ snapshot: Snapshot) -> FeedPosition {
    let text = Array(snapshot.text.utf8)
    let tag = tag(of: text)
    return FeedPosition(ZBase32.encode(tag + masked(text, tag)))
  }

  /// Returns nil unless this store issued the position to this user in this era.
  func open(_ position: FeedPosition) -> Snapshot? {
    guard let bytes = ZBase32.decode(position.text), bytes.count > Self.tagBytes else { return nil }
    let tag = Array(bytes.prefix(Self.tagBytes))
    let text = masked(Array(bytes.dropFirst(Self.tagBytes)), tag)
    guard self.tag(of: text) == tag else { return nil }
    return Snapshot(String(decoding: text, as: UTF8.self))
  }

  private func tag(of text: [UInt8]) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: Array("tag".utf8) + user.bytes + text, using: key).prefix(Self.tagBytes))
  }

  private func masked(_ text: [UInt8], _ tag: [UInt8]) -> [UInt8] {
    var mask: [UInt8] = []
    while mask.count < text.count {
      let block = UInt8(truncatingIfNeeded: mask.count / SHA256.byteCount)
      mask += HMAC<SHA256>.authenticationCode(for: Array("mask".utf8) + tag + [block], using: key)
    }
    return zip(text, mask).map { $0 ^ $1 }
  }
}
