/// A page of commits as it came, decoded but not yet verified.
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
  /// Bytes in the place of records that are none, by their hash.
  package private(set) var unreadable: [RecordHash: ZDCSecurityError] = [:]
  package private(set) var contents: [BlobID: ArraySlice<UInt8>] = [:]

  /// Records and grants are class 2: one with a wrong form is as good as not here, and stops nothing else.
  ///
  /// - Throws: `ZDCSecurityError` for other bytes that are not canonical.
  package init(_ body: [UInt8]) throws(ZDCSecurityError) {
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
    case .acl(let acl): lists[acl.hash] = acl
    case .grant(let grant): grants[grant.wrapHash] = grant
    case .content(let blob, let bytes): contents[blob] = bytes
    // Chains and leaf hashes have their own routes.
    case .link, .leaves: throw ZDCSecurityError(.nonCanonicalEncoding)
    }
  }

  /// The commit of an own request that was accepted; its records need no look.
  package init(ownRequest body: [UInt8], receivedMs: UInt64) throws(ZDCSecurityError) {
    try self.init(body)
    commits = commits.map { Commit(receivedMs: receivedMs, commit: $0.commit) }
  }

  /// The keys that the page's replay needs: of those who write in it, and those that it retires.
  package var signers: Set<Signer> {
    var signers: Set<Signer> = []
    for item in commits {
      signers.insert(Signer(user: item.commit.fields.writer, generation: item.commit.fields.writerGen))
      for case .retireKey(let user, let generation) in item.commit.fields.operations {
        signers.insert(Signer(user: user, generation: generation))
      }
    }
    return signers
  }

  /// The ``signers`` that are members, by the list in force before the page or one in it. Commits of others are refused
  /// anyway: their chains are not needed.
  package func memberSigners(after list: ZoneACL?) -> Set<Signer> {
    var members = Set(list?.fields.entries.map(\.user) ?? [])
    for list in lists.values { members.formUnion(list.fields.entries.map(\.user)) }
    return signers.filter { members.contains($0.user) }
  }

  /// The access list that a commit brings, if it has one.
  package func acl(of commit: ZoneCommit) -> ZoneACL? {
    for case .acl(_, let hash) in commit.fields.operations { return lists[hash] }
    return nil
  }
}
