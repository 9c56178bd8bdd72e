internal import ZDCProtocol
internal import ZDCServer

/// Checks accounts: their chains, rows, keys and counts of uploaded bytes.
struct AccountCheck {
  let pass: IntegrityCheck

  /// Checks every chain by full replay, and compares it with the account's row.
  func checkAccounts() throws {
    let total = try pass.count("SELECT count(*) FROM users")
    try pass.db.each("SELECT user_id FROM users ORDER BY id", []) { row in
      try check(user: try row.id(0))
      pass.report.users += 1
      if pass.report.users % 64 == 0 { pass.advance(.accounts, pass.report.users, of: total) }
      return true
    }
    try checkUploads()
  }

  private func check(user id: UserID) throws {
    guard let row = try pass.store.user(id) else { return }
    let identity: VerifiedIdentity
    do {
      let links = try pass.store.links(of: id)
      identity = try IdentityReplay.verify(try links.map { bytes in try IdentityLink(bytes) }, expected: id)
      let isRecorded = try links.first.map { bytes in try IdentityLink(bytes).hash } == row.genesis
      if !isRecorded { pass.add(.account, [.user(id)], "the genesis link is not the account's") }
    } catch let error as ZDCSecurityError { return pass.add(.identityChain, [.user(id)], error.code.rawValue) }
    let isCurrent =
      row.linkSeq == identity.seq && row.linkHead == identity.head && row.signGen == identity.signGen
      && row.encGen == identity.encGen && row.isClosed == identity.isClosed
    if !isCurrent { pass.add(.account, [.user(id)], "the account's row does not match its chain") }
    // A restored account that was closed again has the keyring of the backup.
    if !identity.isClosed, let keyring = try pass.store.keyring(of: id),
      KeyringHash(labelledHash: "keyring-blob", keyring) != identity.keyringHash
    {
      pass.add(.account, [.user(id)], "the keyring does not match the chain")
    }
    try checkSignKeys(of: id, identity)
  }

  private func checkUploads() throws {
    try pass.db.each(
      """
      SELECT u.user_id FROM users u
        LEFT JOIN (SELECT owner, sum(length) AS total FROM blobs WHERE state < 2 GROUP BY owner) AS sums
          ON sums.owner = u.id
      WHERE u.upload_bytes <> coalesce(sums.total, 0)
      """, []
    ) { row in
      pass.add(.usage, [.user(try row.id(0))], "the count of uploaded bytes is wrong")
      return true
    }
  }

  private func checkSignKeys(of id: UserID, _ identity: VerifiedIdentity) throws {
    var stored: [UInt32: [UInt8]] = [:]
    try pass.db.each(
      "SELECT k.gen, k.key FROM sign_keys k JOIN users u ON u.id = k.user WHERE u.user_id = ?", [.id(id)]
    ) { row in
      stored[UInt32(clamping: row.int(0))] = row.bytes(1)
      return true
    }
    if stored != identity.signKeys { pass.add(.account, [.user(id)], "the signature keys do not match the chain") }
  }
}
