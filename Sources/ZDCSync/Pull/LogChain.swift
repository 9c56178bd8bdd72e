package import ZDCAccounts
package import ZDCProtocol

/// Checks the order and signatures of a log while it is fetched. A server without a member's key therefore cannot make
/// the log longer than the members did. Replay checks the operations of the commits. Pure.
package struct LogChain {
  package let zone: ZoneID
  /// The newest access list of the checked commits. Replay decides later whether it is valid.
  private(set) var list: ZoneACL?
  private var head: (seq: UInt64, hash: CommitHash)?

  package init(zone: ZoneID) { self.zone = zone }

  /// The sequence number of the last commit.
  package var seq: UInt64? { head?.seq }

  /// - Parameter writers: The keys of the page's writers.
  /// - Returns: The page, without objects that its commits do not name.
  /// - Throws: `ZDCSecurityError`.
  package mutating func verified(_ page: PageContents, writers: WriterKeys) throws -> [UInt8] {
    var kept = Bundle.Writer()
    for item in page.commits {
      try check(item.commit, writers)
      if let acl = page.acl(of: item.commit) {
        list = acl
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

  private func check(_ commit: ZoneCommit, _ writers: WriterKeys) throws {
    let isNext = commit.fields.zone == zone && commit.follows(head)
    guard isNext else { throw ZDCSecurityError(.commitChainBroken, zone: zone) }
    do {
      try commit.checkSigner(writers)
    } catch let error as ZDCSecurityError {
      throw error.with(zone: zone)
    }
  }
}
