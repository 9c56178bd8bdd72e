import Foundation
import Testing
import ZDCProtocol

/// Requests other than commits to a shared branch: reads in it, and calls on accounts and mailboxes.
struct BranchRequests {
  typealias Role = SharedBranch.Role

  enum Request: CaseIterable, Sendable {
    case log, state, records, kept, node, content, leafHashes
    case ticket, attachFromOtherNode, attach
    case sendMessage, listInbox, readInbox, deleteMessage, decideAboutSender
    case chain, appendLinkOfOwner, keyring, devices, removeDeviceOfOwner, audit
  }

  /// In the order in which they are sent.
  enum Variant: CaseIterable, Sendable {
    /// Signed with the key of another user.
    case otherSignature
    /// Sent with the token of a device that was removed.
    case endedSession
    /// About a tree, mailbox or device of another account, to which no member of the branch has access, or about no
    /// user's chain.
    case otherPlace
    case valid
    /// The bytes of the valid request again.
    case repeated
    /// Made for an older state: a head, version or key that is not in force.
    case outdated
    /// The bytes of the valid request, sent by another member.
    case otherSession
  }

  private struct Call {
    var method = Method.GET
    var path: String
    var body: [UInt8]?
  }

  let branch: SharedBranch
  /// The own home of each person, which has a commit after the first one.
  private var homes: [Role: TestZone] = [:]
  private var endedSessions: [Role: [UInt8]] = [:]
  private var valid: Call?

  init(_ branch: SharedBranch) async throws {
    self.branch = branch
    for role in Role.allCases {
      let person = try branch.person(role)
      homes[role] = role == .owner ? branch.home : try await Self.home(of: person, branch.server)
      endedSessions[role] = try await Self.endedSession(of: person, branch.server)
    }
  }

  private static func home(of person: SharedBranch.Person, _ server: TestServer) async throws -> TestZone {
    var home = person.account.home
    try await server.put([home.record(.random())], in: &home, token: person.token)
    return home
  }

  private static func endedSession(of person: SharedBranch.Person, _ server: TestServer) async throws -> [UInt8] {
    let device = DeviceID.random()
    let token = try await server.login(person.account, device: device)
    let path = Routes.path(Routes.sessionOfDevice, device.text)
    _ = try await server.send(.DELETE, path, token: person.token).expect(204)
    return token
  }

  mutating func attempt(_ request: Request, by role: Role, _ variant: Variant) async throws -> Answer {
    let isSentAgain = variant == .repeated || variant == .otherSession
    let sent = isSentAgain ? try #require(valid) : try call(request, by: role, variant)
    if variant == .valid { valid = sent }
    return try await branch.server.send(sent.method, sent.path, token: try token(role, variant), body: sent.body)
  }

  private func token(_ role: Role, _ variant: Variant) throws -> [UInt8]? {
    guard role != .unauthenticated else { return nil }
    return switch variant {
    case .endedSession: endedSessions[role]
    case .otherSession: try branch.person(role == .writer ? .sharer : .writer).token
    default: try branch.person(role).token
    }
  }

  private func call(_ request: Request, by role: Role, _ variant: Variant) throws -> Call {
    switch request {
    case .log, .state, .records, .kept: readOfZone(request, variant)
    case .node, .content, .leafHashes: readOfNode(request, variant)
    case .ticket: try ticket(variant)
    case .attach, .attachFromOtherNode: try attach(request, by: role, variant)
    case .sendMessage: try message(variant)
    case .listInbox, .readInbox, .deleteMessage, .decideAboutSender: try inbox(request, variant)
    case .chain, .appendLinkOfOwner, .keyring, .devices, .removeDeviceOfOwner, .audit: try account(request, variant)
    }
  }

  private func json(_ method: Method, _ path: String, _ value: some Encodable) throws -> Call {
    Call(method: method, path: path, body: [UInt8](try JSONEncoder().encode(value)))
  }

  // MARK: The branch

  /// The branch, or the home of a reader.
  private func zone(_ variant: Variant) -> ZoneID {
    variant == .otherPlace ? branch.extra.account.home.zone : branch.zone.zone
  }

  private func readOfZone(_ request: Request, _ variant: Variant) -> Call {
    let zone = zone(variant)
    func path(_ pattern: String) -> String { Routes.path(pattern, zone.tree.text, zone.root.text) }
    switch request {
    case .log:
      let after = variant == .outdated ? "&after=\(branch.seqOfRemoval)" : ""
      return Call(path: path(Routes.zoneCommits) + "?records=1" + after)
    case .state: return Call(path: path(Routes.zoneState))
    default:
      let hash: RecordHash = variant == .outdated ? .random() : branch.zone.records[branch.file]?.hash ?? .zero
      let names = TestServer.recordNames([(branch.file, hash)])
      return Call(method: .POST, path: path(request == .kept ? Routes.kept : Routes.records), body: names)
    }
  }

  private func readOfNode(_ request: Request, _ variant: Variant) -> Call {
    let zone = zone(variant)
    guard request != .node else {
      let node = variant == .otherPlace ? zone.root : branch.file
      return Call(path: Routes.path(Routes.node, zone.tree.text, node.text))
    }
    let blob: BlobID = variant == .outdated ? .random() : branch.content.blob
    let pattern = request == .content ? Routes.content : Routes.leafHashes
    return Call(path: Routes.path(pattern, zone.tree.text, branch.document.text, blob.text))
  }

  private func ticket(_ variant: Variant) throws -> Call {
    let ticket = BlobTicketRequest(
      blobID: .random(), treeID: zone(variant).tree, nodeID: branch.file, cipherLength: 200_000)
    return try json(.POST, Routes.blobs, ticket)
  }

  /// Puts a node with the branch's content into the user's own home.
  private func attach(_ request: Request, by role: Role, _ variant: Variant) throws -> Call {
    let account = try branch.person(role).account
    let home = variant == .outdated ? account.home : homes[role] ?? account.home
    let record = home.record(.random(), content: branch.content.field())
    var commit = try home.commit([.put(.init(record))])
    if variant == .otherSignature {
      commit = try ZoneCommit(commit.fields) { try branch.extra.account.signKey.sign("commit", $0) }
    }
    let node = request == .attach ? branch.document : branch.zone.zone.root
    let source = AttachedContent(tree: zone(variant).tree, node: node, blob: branch.content.blob)
    let body = ZDCProtocol.Bundle.attaching([source]) + TestZone.body(commit, records: [record])
    return Call(method: .POST, path: Routes.commits, body: body)
  }

  // MARK: Accounts and mailboxes

  private func message(_ variant: Variant) throws -> Call {
    let recipient = branch.extra.account
    let holder = variant == .otherPlace ? try branch.person(.owner).account : recipient
    let envelope = MessageEnvelope(
      id: .random(), recipient: recipient.userID, inbox: try Self.inbox(of: holder),
      recipientEncGen: variant == .outdated ? 2 : 1, sealed: randomBytes(1_200))
    var bundle = ZDCProtocol.Bundle.Writer()
    bundle.append(envelope: envelope.bytes)
    return Call(method: .POST, path: Routes.messages, body: bundle.bytes)
  }

  private static func inbox(of account: TestAccount) throws -> TreeID {
    try #require(account.zones[.inbox]).zone.tree
  }

  /// A request about the owner's mailbox.
  private func inbox(_ request: Request, _ variant: Variant) throws -> Call {
    let holder = variant == .otherPlace ? branch.extra : try branch.person(.owner)
    let (tree, sender) = (try Self.inbox(of: holder.account).text, branch.extra.account.userID)
    switch request {
    case .listInbox: return Call(path: Routes.path(Routes.inbox, tree))
    case .readInbox:
      let names = MessageName.bytes(of: [MessageName(sender: sender, id: .random())])
      return Call(method: .POST, path: Routes.path(Routes.inboxEnvelopes, tree), body: names)
    case .deleteMessage:
      let path = Routes.path(Routes.inboxMessage, tree, sender.text, MessageID.random().text)
      return Call(method: .DELETE, path: path)
    default: return try json(.PUT, Routes.path(Routes.sender, tree, sender.text), SenderRequest(state: .accepted))
    }
  }

  private func account(_ request: Request, _ variant: Variant) throws -> Call {
    let (owner, extra) = (try branch.person(.owner).account, branch.extra.account)
    switch request {
    case .chain:
      let user = variant == .otherPlace ? UserID.random() : owner.userID
      return Call(path: Routes.path(Routes.chain, user.text))
    case .appendLinkOfOwner:
      let root = variant == .otherSignature ? extra.rootKey : owner.rootKey
      let link = try owner.rotation(to: SigningKey(), signedBy: root)
      return try json(.POST, Routes.links, AppendLinkRequest(link: WireBytes(link.bytes)))
    case .removeDeviceOfOwner:
      let device = (variant == .otherPlace ? extra : owner).deviceID
      return Call(method: .DELETE, path: Routes.path(Routes.sessionOfDevice, device.text))
    case .keyring: return Call(path: Routes.keyring)
    case .devices: return Call(path: Routes.sessions)
    default: return Call(path: Routes.audit)
    }
  }
}
