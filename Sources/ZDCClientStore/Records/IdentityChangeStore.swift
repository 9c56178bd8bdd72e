internal import Foundation
package import GRDB
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// An identity link that this device has signed, and everything that it introduces. It is stored before it is sent, and
/// the same bytes are sent until the outcome is known (PROTOCOL 3.4).
///
/// `"ZDIC" u8 1 u8 1 | v32 link | v32 keyring blob | b[32] access key | b[32] sign seed | b[32] decrypt seed`
package struct PendingIdentityChange: Sendable {
  package var link: IdentityLink
  /// Sealed under `accessKey`; empty if the link keeps the keyring.
  package var keyringBlob: [UInt8]
  /// The access key after the change.
  package var accessKey: AccessKey
  /// The current keys after the change.
  package var signingKey: SigningKey
  package var decryptionKey: DecryptionKey

  package init(
    link: IdentityLink, keyringBlob: [UInt8], accessKey: AccessKey, signingKey: SigningKey,
    decryptionKey: DecryptionKey
  ) {
    self.link = link
    self.keyringBlob = keyringBlob
    self.accessKey = accessKey
    self.signingKey = signingKey
    self.decryptionKey = decryptionKey
  }

  fileprivate var bytes: [UInt8] {
    var out = ByteWriter(magic: "ZDIC", capacity: 2_048 + keyringBlob.count)
    out.append32(link.bytes)
    out.append32(keyringBlob)
    out.append(contentsOf: accessKey.exportBytes())
    out.append(contentsOf: signingKey.seed.exportBytes())
    out.append(contentsOf: decryptionKey.seed.exportBytes())
    return out.bytes
  }

  fileprivate init(_ bytes: [UInt8]) throws {
    var reader = ByteReader(bytes)
    try reader.readPreamble(magic: "ZDIC")
    link = try IdentityLink(Array(try reader.readVariable32(limit: Limits.linkBytes)))
    keyringBlob = Array(try reader.readVariable32(limit: Limits.keyringBytes))
    let accessKey = AccessKey(try reader.read(count: 32))
    let sign = SigningSeed(try reader.read(count: 32))
    let decrypt = DecryptionSeed(try reader.read(count: 32))
    try reader.finish()
    guard let accessKey, let sign, let decrypt else { throw ZDCError(.corruptDatabase) }
    self.accessKey = accessKey
    signingKey = SigningKey(seed: sign)
    decryptionKey = try DecryptionKey(seed: decrypt)
  }
}

/// The rows of zdc_identity_change inside one transaction.
package struct IdentityChangeStore {
  package let db: Database
  private let sealer: TableSealer

  package init(db: Database, sealer: ValueSealer) {
    self.db = db
    self.sealer = sealer.table("zdc_identity_change")
  }

  // MARK: The pending change

  package func pending(of user: UserID) throws -> PendingIdentityChange? {
    let statement = try db.cachedStatement(
      sql: """
        SELECT c.sealed FROM zdc_identity_change c JOIN zdc_local_user u ON u.id = c.localUser WHERE u.userID = ?
        """)
    guard let sealed = try Row.fetchOne(statement, arguments: [user.data])?.requiredBytes(0) else { return nil }
    return try PendingIdentityChange(try sealer.open(sealed, row: user.bytes))
  }

  package func setPending(_ change: PendingIdentityChange, of user: UserID) throws {
    try db.execute(
      sql: """
        INSERT OR REPLACE INTO zdc_identity_change (localUser, sealed)
        SELECT id, ? FROM zdc_local_user WHERE userID = ?
        """, arguments: [Data(try sealer.seal(change.bytes, row: user.bytes)), user.data])
  }

  package func removePending(of user: UserID) throws {
    try db.execute(
      sql: "DELETE FROM zdc_identity_change WHERE localUser = (SELECT id FROM zdc_local_user WHERE userID = ?)",
      arguments: [user.data])
  }
}
