internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol

/// The beginning of a zone that was split off, as the server shows it, not yet verified.
struct SplitOrigin: Sendable {
  let genesis: ZoneCommit
  let acl: ZoneACL
  let grants: [GrantHash: Grant]

  /// - Returns: Nil if a page does not contain the commit.
  init?(_ hash: CommitHash, in page: PageContents) {
    guard let item = page.commits.first(where: { $0.commit.hash == hash }), let acl = page.acl(of: item.commit) else {
      return nil
    }
    (genesis, self.acl, grants) = (item.commit, acl, page.grants)
  }
}

/// Data that replay needs besides a page, fetched before its transaction: the beginnings of the zones that
/// the page's commits split off, and the state with which the page's own zone begins.
struct ZoneOrigins: Sendable {
  var branches: [CommitHash: SplitOrigin] = [:]
  var state: StateList?
  /// Whether the page is a request of this device, which may contain commits of several zones.
  var isOwnRequest = false
  /// The branch that the request splits off. Reading and hashing a large one again takes long.
  private var ownSplit: ZoneSplit?

  init() {}

  /// The origins in an accepted request of this device.
  ///
  /// - Parameter split: The branch that it splits off; nil to read it from the log's nodes.
  init(ownRequest page: PageContents, split: ZoneSplit?) {
    isOwnRequest = true
    ownSplit = split
    for item in page.commits where item.commit.fields.genesisState != nil {
      branches[item.commit.hash] = SplitOrigin(item.commit.hash, in: page)
    }
  }

  /// The keys of members that the replay of the branches' first commits needs. They retire keys that no commit of the page may
  /// name.
  var signers: Set<Signer> {
    Set(
      branches.values.flatMap { origin in
        origin.genesis.signers.filter { origin.acl.fields.entry(for: $0.user) != nil }
      })
  }

  /// Adds the origins of another page of the same log.
  mutating func add(_ other: ZoneOrigins) {
    branches.merge(other.branches) { old, _ in old }
    state = state ?? other.state
  }

  /// Returns the branch that a commit splits off, if it is known: the same head has the same nodes.
  func knownSplit(of commit: ZoneCommit, after head: ZoneHead?) -> ZoneSplit? {
    guard let ownSplit, ownSplit.parentHead == head?.hash, ownSplit.genesis == commit.fields.split?.genesis else {
      return nil
    }
    return ownSplit
  }

  /// Returns the row of the zone that a commit splits off, and inserts it if the genesis names this user as a member; nil
  /// if this device does not follow the zone, or knows its nodes already.
  func branchZone(
    of commit: ZoneCommit, parent: ZoneRow, user: UserID, _ transaction: ZDCReadWriteTransaction
  ) throws -> Int64? {
    guard let (node, genesis) = commit.fields.split, let origin = branches[genesis],
      origin.acl.fields.entry(for: user) != nil
    else { return nil }
    let zone = ZoneID(tree: parent.zone.tree, root: node)
    if let known = try transaction.zones.zone(localUser: parent.localUser, zone) {
      return known.head == nil ? known.id : nil
    }
    var row = ZoneRow(
      localUser: parent.localUser, appTreeID: parent.appTreeID, trunk: parent.trunk, zone: zone, owner: parent.owner,
      genesis: genesis)
    try transaction.zones.insert(&row)
    return row.id
  }
}

extension ZoneCommit.Fields {
  /// The branch that the commit splits off, and the first commit of its zone.
  var split: (node: NodeID, genesis: CommitHash)? {
    for case .split(let node, let genesis, _) in operations { return (node, genesis) }
    return nil
  }
}

/// Reads what the replay of a zone's pages needs of other zones.
struct OriginReader {
  let session: SyncSession
  let zone: Int64

  /// Fetches what the replay of a page needs. A split that the zone's owner has not signed causes no request, nor does
  /// a genesis without a valid signature: replay refuses both.
  ///
  /// - Parameter row: The zone before the page.
  func origins(of page: PageContents, _ row: ZoneRow, writers: WriterKeys) async throws -> ZoneOrigins {
    var origins = ZoneOrigins()
    let known = row.head?.seq
    for item in page.commits where known.map({ item.commit.fields.seq > $0 }) ?? true {
      guard let (node, genesis) = item.commit.fields.split, item.commit.fields.writer == row.owner ?? session.user,
        item.commit.isSigned(by: writers)
      else { continue }
      let zone = ZoneID(tree: row.zone.tree, root: node)
      origins.branches[genesis] = try await origin(genesis, of: zone, parent: row)
    }
    if row.head == nil, let first = page.commits.first?.commit, let state = first.fields.genesisState,
      first.isSigned(by: writers)
    {
      origins.state = try await stateList(state, of: row.zone)
    }
    return origins
  }

  private func origin(_ genesis: CommitHash, of zone: ZoneID, parent: ZoneRow) async throws -> SplitOrigin? {
    if let own = try await ownOrigin(genesis) { return own }
    let page: PageContents
    do {
      let answer = try await session.api.commitPage(zone, after: nil, withRecords: false, withEdits: true)
      page = try PageContents(answer.body)
    } catch let error as ServerError where error.code == .notFound {
      guard parent.owner == nil else { return nil }  // not a member of the new zone
      throw Doubt(ZDCSecurityError(.splitMismatch, zone: zone), .none)
    } catch let error as ZDCSecurityError {
      throw Doubt(error.with(zone: zone), isSigned: false)
    }
    // Another first commit than the one that the owner signed is the server's doing.
    guard let origin = SplitOrigin(genesis, in: page) else {
      throw Doubt(ZDCSecurityError(.splitMismatch, zone: zone), isSigned: false)
    }
    if parent.owner != nil, origin.acl.fields.entry(for: session.user) != nil { try await session.accept(zone) }
    return origin
  }

  private func ownOrigin(_ genesis: CommitHash) async throws -> SplitOrigin? {
    let request = try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).request(zone: zone)
    }
    return try request.flatMap { SplitOrigin(genesis, in: try PageContents(ownRequest: $0.body)) }
  }

  /// Fetches the state with which a zone begins. The genesis is signed and the answer is not, so another list than the
  /// one that the genesis names proves nothing.
  private func stateList(_ state: ZoneOperation.GenesisState, of zone: ZoneID) async throws -> StateList {
    let list: StateList
    do {
      list = try StateList(try await session.api.stateList(zone, count: state.count))
    } catch let error as ZDCSecurityError {
      throw Doubt(error.with(zone: zone), isSigned: false)
    }
    guard list.isNamed(by: state) else { throw Doubt(ZDCSecurityError(.splitMismatch, zone: zone), .none) }
    return list
  }
}
