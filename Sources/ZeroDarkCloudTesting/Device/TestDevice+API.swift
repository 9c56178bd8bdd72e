internal import Foundation
internal import ZDCCrypto
package import ZDCProtocol
package import ZeroDarkCloud

// The wire API with the session of a device's first account, for requests that the framework itself does not send.

extension TestDevice {
  package var api: ServerAPI {
    get async throws {
      guard let manager = try zdc.localUserManager, let user = UserID(text: try localUserID) else {
        throw TestFailure("\(name)'s database is locked")
      }
      return try await manager.serverAPI(for: user)
    }
  }

  private var keys: UserKeys {
    get async throws {
      guard let manager = try zdc.localUserManager, let user = UserID(text: try localUserID) else {
        throw TestFailure("\(name)'s database is locked")
      }
      return try await manager.keys(for: user)
    }
  }

  /// Adds a claim for another app's tree to the account's chain. Repeating the call does not add a second link.
  package func appendClaim() async throws -> String {
    let last = try await lastLink()
    if last.kind == .claims { return "2 links" }
    let claim = IdentityLink.Claim.tree(
      appTreeID: "another.tree", genesisCommits: [CommitHash](repeating: .zero, count: 4))
    let link = try await link(claiming: claim, after: last)
    try await api.appendLink(AppendLinkRequest(link: WireBytes(link.bytes), keyring: nil, lookupID: nil, loginKey: nil))
    return "2 links"
  }

  /// The next link of the account's chain, with a claim of a handle. The server does not get it.
  package func linkClaiming(_ handle: String) async throws -> IdentityLink {
    try await link(claiming: .handle(Handle(handle)), after: try await lastLink())
  }

  private func lastLink() async throws -> IdentityLink {
    var reader = ZDCProtocol.Bundle.Reader(try await api.chain(of: try await keys.userID))
    guard case .link(let last) = try reader.all().last else { throw TestFailure("no chain") }
    return last
  }

  private func link(claiming claim: IdentityLink.Claim, after last: IdentityLink) async throws -> IdentityLink {
    let keys = try await keys
    var fields = IdentityLink.Fields(
      kind: .claims, timeMs: 1, rootPub: last.rootPub, signPub: last.signPub, encPub: last.encPub)
    (fields.seq, fields.prev, fields.userID) = (last.seq + 1, last.hash, keys.userID)
    (fields.keyringVersion, fields.keyringHash) = (last.keyringVersion, last.keyringHash)
    fields.claims = [claim]
    return try IdentityLink(signing: fields, root: keys.accessKey.rootKey, sign: keys.signingKey)
  }

  /// Creates the trunks of another app on the account.
  package func createOtherTree() async throws -> String {
    let (api, keys) = (try await api, try await keys)
    var reader = ZDCProtocol.Bundle.Reader(try await api.chain(of: keys.userID))
    guard case .link(let link) = try reader.next() else { throw TestFailure("no chain") }
    let owner = TrunkOwner(
      user: keys.userID, signingKey: keys.signingKey, signGen: keys.signGen, encPub: link.encPub,
      encGen: keys.identity.encGen)
    var bundle = ZDCProtocol.Bundle.Writer()
    for trunk in Trunk.allCases {
      let birth = try TrunkGenesis(trunk, appTreeID: "another.tree", owner: owner, timeMs: 1)
      bundle.append(record: birth.root.bytes)
      bundle.append(grant: birth.grant.bytes)
      bundle.append(acl: birth.acl.bytes)
      bundle.append(commit: birth.commit.bytes)
    }
    do {
      return "\(try await api.createTree("another.tree", bundle: bundle.bytes).zones.count) trunks"
    } catch let error as ServerError where error.code == .zoneExists {
      // An earlier attempt succeeded, with other keys.
      return "4 trunks"
    }
  }

  /// Starts an upload into home.
  package func openBlob() async throws -> BlobID {
    let api = try await api
    let zone = try await api.zones(since: nil).zones[0]
    let blob = BlobID.random()
    _ = try await api.openBlob(
      BlobTicketRequest(blobID: blob, treeID: zone.treeID, nodeID: .random(), cipherLength: 100_000))
    return blob
  }
}
