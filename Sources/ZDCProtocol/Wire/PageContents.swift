/// A page of commits as received, decoded but not yet verified.
package struct PageContents {
  package struct Commit {
    package var receivedMs: UInt64
    package var commit: ZoneCommit
  }

  package struct Record {
    package var receivedMs: UInt64
    package var dataReceivedMs: UInt64
    package var record: NodeRecord
  }

  package private(set) var commits: [Commit] = []
  package private(set) var lists: [ACLHash: ZoneACL] = [:]
  package private(set) var grants: [GrantHash: Grant] = [:]
  package private(set) var records: [RecordHash: Record] = [:]
  /// The errors of records that cannot be decoded, by their hash.
  package private(set) var unreadable: [RecordHash: ZDCSecurityError] = [:]
  package private(set) var contents: [BlobID: ArraySlice<UInt8>] = [:]
  /// The last list of the page, or the one before the page. The next edit changes it.
  package private(set) var newestList: ZoneACL?
  /// Whether the bytes are a request of this client, which may attach content of other nodes.
  private var isOwnRequest = false

  /// Decodes a page. Records and grants are class 2: a malformed one counts as missing and does not affect the rest.
  ///
  /// - Parameter list: The access list in force before the page. The page may contain the next one as an edit of it.
  /// - Throws: `ZDCSecurityError` for other bytes that are not canonical.
  package init(_ body: [UInt8], after list: ZoneACL? = nil) throws(ZDCSecurityError) {
    newestList = list
    try add(body)
  }

  private mutating func add(_ body: [UInt8]) throws(ZDCSecurityError) {
    var reader = Bundle.Reader(body)
    while let item = try reader.nextLeniently() {
      switch item {
      case .item(let item): try add(item)
      case .unreadableRecord(let hash, let error): unreadable[hash] = error
      case .unreadableGrant: break
      }
    }
  }

  private mutating func add(_ item: Bundle.Item) throws(ZDCSecurityError) {
    switch item {
    case .commit(let receivedMs, let commit): commits.append(Commit(receivedMs: receivedMs, commit: commit))
    case .record(let receivedMs, let dataReceivedMs, let record):
      records[record.hash] = Record(receivedMs: receivedMs, dataReceivedMs: dataReceivedMs, record: record)
    case .acl(let acl): add(acl)
    case .aclEdit(let edit):
      guard let base = newestList else { throw ZDCSecurityError(.nonCanonicalEncoding) }
      add(try edit.applied(to: base))
    case .grant(let grant): grants[grant.wrapHash] = grant
    case .content(let blob, let bytes): contents[blob] = bytes
    case .attach where isOwnRequest: break
    // Chains, leaf hashes and messages have separate routes, and only requests attach content.
    case .link, .leaves, .attach, .envelope: throw ZDCSecurityError(.nonCanonicalEncoding)
    }
  }

  private mutating func add(_ list: ZoneACL) {
    lists[list.hash] = list
    newestList = list
  }

  /// Creates the page of an accepted request of this client, whose records need no check.
  package init(ownRequest body: [UInt8], receivedMs: UInt64 = 0) throws(ZDCSecurityError) {
    isOwnRequest = true
    try add(body)
    commits = commits.map { Commit(receivedMs: receivedMs, commit: $0.commit) }
  }

  /// The keys that the page's replay needs: those of its writers, and those that it retires.
  package var signers: Set<Signer> {
    var signers: Set<Signer> = []
    // Most commits have the same writer as the one before.
    var last: Signer?
    for item in commits {
      if item.commit.signer != last { signers.insert(item.commit.signer) }
      last = item.commit.signer
      signers.formUnion(item.commit.retiredSigners)
    }
    return signers
  }

  /// Returns the nodes that commits after a number delete, without those below them; nil stands for the beginning.
  package func deletes(after seq: UInt64?) -> [NodeID] {
    var nodes: [NodeID] = []
    for item in commits where seq.map({ item.commit.fields.seq > $0 }) ?? true {
      for case .delete(let node, _, _) in item.commit.fields.operations { nodes.append(node) }
    }
    return nodes
  }

  /// Returns the ``signers`` that are members according to the list before the page or a list in it. Commits of others
  /// are refused anyway, so their chains are not needed.
  package func memberSigners(after list: ZoneACL?) -> Set<Signer> {
    var members = Set(list?.fields.entries.map(\.user) ?? [])
    for list in lists.values { members.formUnion(list.fields.entries.map(\.user)) }
    return signers.filter { members.contains($0.user) }
  }

  /// Returns the access list that a commit carries, if any.
  package func acl(of commit: ZoneCommit) -> ZoneACL? {
    for case .acl(_, let hash) in commit.fields.operations { return lists[hash] }
    return nil
  }
}
