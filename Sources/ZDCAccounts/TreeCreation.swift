package import ZDCClientAPI
internal import ZDCCrypto
internal import ZDCProtocol

/// Creates an app's tree on an existing account (PROTOCOL 3.2, 3.9, 4.4). A kill between any two steps loses nothing:
/// the next call resumes.
///
/// 1. Store this device's new trunks in the database (state `addingTree`).
/// 2. Send them to the server. The same request may be sent again and gets the same answer.
/// 3. Append the claim that names them to the account's chain.
///
/// If another device was faster, or a device that no longer exists stopped after step 2, the server has other trunks.
/// Those are claimed once they verify as trunks that this account signed.
package struct TreeCreation {
  package let api: ServerAPI
  package let appTreeID: String
  package let now: @Sendable () -> UInt64

  /// Maximum number of attempts to add the claim while other devices extend the chain too.
  private static let attempts = 8

  /// Returns the trunks of step 1, in the form that the server accepts.
  package static func trunks(for keys: UserKeys, appTreeID: String, timeMs: UInt64) throws -> [UInt8] {
    guard keys.canSign else { throw ZDCSecurityError(.writerNotAuthorized, user: keys.userID) }
    guard let encPub = keys.identity.encKeys[keys.encGen] else {
      throw ZDCSecurityError(.keyringMismatch, user: keys.userID)
    }
    let owner = TrunkOwner(
      user: keys.userID, signingKey: keys.signingKey, signGen: keys.signGen, encPub: encPub, encGen: keys.encGen)
    var bundle = Bundle.Writer()
    for trunk in Trunk.allCases {
      let birth = try TrunkGenesis(trunk, appTreeID: appTreeID, owner: owner, timeMs: timeMs)
      bundle.append(record: birth.root.bytes)
      bundle.append(grant: birth.grant.bytes)
      bundle.append(acl: birth.acl.bytes)
      bundle.append(commit: birth.commit.bytes)
    }
    return bundle.bytes
  }

  /// Runs steps 2 and 3.
  ///
  /// - Parameter chain: The account's verified chain, without a claim for this app.
  /// - Returns: The chain with the claim.
  package func run(_ trunks: [UInt8], chain: [UInt8], keys: UserKeys) async throws -> [UInt8] {
    let commits: [CommitHash]
    do {
      _ = try await api.createTree(appTreeID, bundle: trunks)
      commits = try PageContents(trunks).commits.map(\.commit.hash)
    } catch let error as ServerError where error.code == .zoneExists {
      commits = try await existing(keys)
    }
    return try await claim(commits, chain: chain, keys: keys)
  }

  // MARK: Trunks of another device

  /// Returns the first commits of the trunks that the server has, verified.
  private func existing(_ keys: UserKeys) async throws -> [CommitHash] {
    var commits: [CommitHash] = []
    for trunk in Trunk.allCases {
      let zone = ZoneID(trunkOf: .derive(owner: keys.userID, trunk: trunk, appTreeID: appTreeID))
      let page = try PageContents(try await api.commitPage(zone, after: nil, withRecords: false).body)
      guard let commit = page.commits.first?.commit, let acl = page.acl(of: commit) else {
        throw ZDCSecurityError(.objectMissing, zone: zone)
      }
      try verify(commit, acl, trunk: trunk, zone: zone, keys: keys)
      commits.append(commit.hash)
    }
    return commits
  }

  private func verify(
    _ commit: ZoneCommit, _ acl: ZoneACL, trunk: Trunk, zone: ZoneID, keys: UserKeys
  ) throws {
    let fields = acl.fields
    try require(commit.fields.zone == zone && fields.zone == zone, .recordBindingMismatch)
    try require(fields.trunk == trunk && fields.appTreeID == appTreeID, .recordBindingMismatch)
    let isOwn = fields.owner == keys.userID && commit.fields.writer == keys.userID
    try require(isOwn && fields.entries.map(\.user) == [keys.userID] && !fields.parentLinked, .aclNotAuthorized)
    var state = MemoryZoneState()
    _ = try ZoneReplay(identities: keys).apply(commit, acl: acl, after: nil, to: &state)
  }

  // MARK: The claim

  private func claim(_ commits: [CommitHash], chain: [UInt8], keys: UserKeys) async throws -> [UInt8] {
    var (chain, keys) = (chain, keys)
    for _ in 0..<Self.attempts where !keys.identity.hasTreeClaim(appTreeID: appTreeID) {
      let link = try link(commits, after: chain, keys: keys)
      do {
        try await api.appendLink(
          AppendLinkRequest(link: WireBytes(link.bytes), keyring: nil, lookupID: nil, loginKey: nil))
        var longer = Bundle.Writer()
        for known in try IdentityChain.links(chain, of: keys.userID) { longer.append(link: known.bytes) }
        longer.append(link: link.bytes)
        return longer.bytes
      } catch let error as ServerError where error.code == .conflict {
        let fetched = try await api.chain(of: keys.userID)
        guard try IdentityChain.compare(pinned: chain, with: fetched, of: keys.userID) == .longer else { throw error }
        chain = fetched
        keys = try UserKeys(
          chain: chain, keyringBlob: try await api.keyring(), accessKey: keys.accessKey, expected: keys.userID,
          pinnedVersion: keys.keyringVersion)
      }
    }
    guard keys.identity.hasTreeClaim(appTreeID: appTreeID) else {
      throw ServerError(.conflict, "the account's chain changes too often")
    }
    return chain
  }

  private func link(_ commits: [CommitHash], after chain: [UInt8], keys: UserKeys) throws -> IdentityLink {
    guard let last = try IdentityChain.links(chain, of: keys.userID).last else {
      throw ZDCSecurityError(.accountStateMissing, user: keys.userID)
    }
    var fields = IdentityLink.Fields(
      kind: .claims, timeMs: now(), rootPub: last.rootPub, signPub: last.signPub, encPub: last.encPub)
    (fields.seq, fields.prev, fields.userID) = (last.seq + 1, last.hash, keys.userID)
    (fields.signGen, fields.encGen) = (last.signGen, last.encGen)
    (fields.keyringVersion, fields.keyringHash) = (last.keyringVersion, last.keyringHash)
    fields.claims = [.tree(appTreeID: appTreeID, genesisCommits: commits)]
    return try IdentityLink(signing: fields, root: keys.accessKey.rootKey, sign: keys.signingKey)
  }
}
