internal import Foundation
package import GRDB
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// The decisions of this device's user about another user. They hold for all accounts on the device.
///
/// `"ZDCO" u8 1 u8 1 | u8 flags (1 blocked, 2 verified) | u32 link | b[32] link hash`
package struct Contact: Sendable, Hashable {
  package struct Link: Sendable, Hashable {
    package var seq: UInt32
    package var hash: LinkHash

    package init(seq: UInt32, hash: LinkHash) { (self.seq, self.hash) = (seq, hash) }
  }

  package var isBlocked = false
  /// The end of the user's chain when it was compared; nil if it was not, or if a later change was accepted.
  package var verified: Link?

  package init() {}

  fileprivate var bytes: [UInt8] {
    var out = ByteWriter(magic: "ZDCO", capacity: 64)
    out.append((isBlocked ? 1 : 0) | (verified == nil ? 0 : 2) as UInt8)
    out.append(verified?.seq ?? 0)
    out.append(verified?.hash ?? .zero)
    return out.bytes
  }

  fileprivate init(_ bytes: [UInt8]) throws {
    var reader = ByteReader(bytes)
    try reader.readPreamble(magic: "ZDCO")
    let flags = try reader.readUInt8()
    let link = Link(seq: try reader.readUInt32(), hash: try reader.read32())
    try reader.finish()
    guard flags <= 3 else { throw ZDCError(.corruptDatabase) }
    isBlocked = flags & 1 == 1
    verified = flags & 2 == 2 ? link : nil
  }

  /// - Parameter links: The user's pinned chain.
  package func state(_ links: [IdentityLink]) -> ZDCIdentityState {
    if links.last?.kind == .closed { return .closed }
    guard let verified else { return .seen }
    let hasNewRoot = links.contains { $0.seq > verified.seq && $0.kind == .rotateRoot }
    return hasNewRoot ? .changed : .verified(link: verified.seq)
  }
}

/// The rows of zdc_contact inside one transaction.
package struct ContactStore {
  package let db: Database
  private let sealer: TableSealer

  package init(db: Database, sealer: ValueSealer) {
    self.db = db
    self.sealer = sealer.table("zdc_contact")
  }

  package func contact(of user: UserID) throws -> Contact {
    let statement = try db.cachedStatement(sql: "SELECT sealed FROM zdc_contact WHERE userID = ?")
    guard let sealed = try Row.fetchOne(statement, arguments: [user.data])?.requiredBytes(0) else { return Contact() }
    return try Contact(try sealer.open(sealed, row: user.bytes))
  }

  package func set(_ contact: Contact, of user: UserID) throws {
    try db.execute(
      sql: """
        INSERT INTO zdc_contact (userID, sealed) VALUES (?, ?)
        ON CONFLICT (userID) DO UPDATE SET sealed = excluded.sealed
        """, arguments: [user.data, Data(try sealer.seal(contact.bytes, row: user.bytes))])
  }
}
