internal import ZDCProtocol
internal import ZDCServer

extension IntegrityCheck {
  /// Checks every chain by full replay, and compares it with the account's row.
  func checkAccounts() throws {
    let total = try count("SELECT count(*) FROM users")
    try db.each("SELECT user_id FROM users ORDER BY id", []) { row in
      try check(user: try row.id(0))
      report.users += 1
      if report.users % 64 == 0 { advance(.accounts, report.users, of: total) }
      return true
    }
    try checkUploads()
  }

  private func check(user id: UserID) throws {
    guard let row = try store.user(id) else { return }
    let identity: VerifiedIdentity
    do {
      let links = try store.links(of: id)
      identity = try IdentityReplay.verify(try links.map { bytes in try IdentityLink(bytes) }, expected: id)
      let isRecorded = try links.first.map { bytes in try IdentityLink(bytes).hash } == row.genesis
      if !isRecorded { add(.account, [.user(id)], "the genesis link is not the account's") }
    } catch let error as ZDCSecurityError { return add(.identityChain, [.user(id)], error.code.rawValue) }
    let isCurrent =
      row.linkSeq == identity.seq && row.linkHead == identity.head && row.signGen == identity.signGen
      && row.encGen == identity.encGen && row.isClosed == identity.isClosed
    if !isCurrent { add(.account, [.user(id)], "the account's row does not match its chain") }
    // A restored account that was closed again has the keyring of the backup.
    if !identity.isClosed, let keyring = try store.keyring(of: id),
      KeyringHash(labelledHash: "keyring-blob", keyring) != identity.keyringHash
    {
      add(.account, [.user(id)], "the keyring does not match the chain")
    }
    try checkSignKeys(of: id, identity)
  }

  private func checkUploads() throws {
    try db.each(
      """
      SELECT u.user_id FROM users u
        LEFT JOIN (SELECT owner, sum(length) AS total FROM blobs WHERE state < 2 GROUP BY owner) AS sums
          ON sums.owner = u.id
      WHERE u.upload_bytes <> coalesce(sums.total, 0)
      """, []
    ) { row in
      add(.usage, [.user(try row.id(0))], "the count of uploaded bytes is wrong")
      return true
    }
  }

  private func checkSignKeys(of id: UserID, _ identity: VerifiedIdentity) throws {
    var stored: [UInt32: [UInt8]] = [:]
    try db.each(
      "SELECT k.gen, k.key FROM sign_keys k JOIN users u ON u.id = k.user WHERE u.user_id = ?", [.id(id)]
    ) { row in
      stored[UInt32(clamping: row.int(0))] = row.bytes(1)
      return true
    }
    if stored != identity.signKeys { add(.account, [.user(id)], "the signature keys do not match the chain") }
  }
}
