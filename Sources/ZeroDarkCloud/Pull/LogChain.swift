internal import ZDCCrypto
internal import ZDCProtocol

/// Checks the order and the signatures of a log while it is fetched: a server that has no member's key can make it no
/// longer than members did. What its commits do is for replay to judge. Pure.
struct LogChain {
  let zone: ZoneID
  private let identities: UserKeys
  private var head: (seq: UInt64, hash: CommitHash)?

  init(zone: ZoneID, identities: UserKeys) {
    self.zone = zone
    self.identities = identities
  }

  /// The last commit's.
  var seq: UInt64? { head?.seq }

  /// - Returns: the page, without what its commits do not name.
  /// - Throws: `ZDCSecurityError`.
  mutating func verified(_ page: PageContents) throws -> [UInt8] {
    var kept = Bundle.Writer()
    for item in page.commits {
      try check(item.commit)
      if let acl = page.acl(of: item.commit) {
        kept.append(acl: acl.bytes)
        for entry in acl.fields.entries {
          if let grant = page.grants[entry.wrapHash] { kept.append(grant: grant.bytes) }
        }
      }
      kept.append(commit: item.commit.bytes, receivedMs: item.receivedMs)
      head = (item.commit.fields.seq, item.commit.hash)
    }
    return kept.bytes
  }

  private func check(_ commit: ZoneCommit) throws {
    let fields = commit.fields
    let expected = head.map { ($0.seq == .max ? 0 : $0.seq + 1, $0.hash) } ?? (0, ZoneCommit.genesisPrev(zone: zone))
    let isNext = fields.zone == zone && fields.seq == expected.0 && fields.prev == expected.1
    guard isNext else { throw ZDCSecurityError(.commitChainBroken, zone: zone) }
    guard let key = try identities.signKey(user: fields.writer, generation: fields.writerGen) else {
      throw ZDCSecurityError(.writerUnknown, zone: zone, user: fields.writer)
    }
    let isValid = Signatures.isValid(commit.signature, by: key, label: "commit", message: commit.signedBytes)
    guard isValid else { throw ZDCSecurityError(.signatureInvalid, zone: zone) }
  }
}
