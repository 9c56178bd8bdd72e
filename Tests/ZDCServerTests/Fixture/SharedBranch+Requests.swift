import Testing
import ZDCProtocol

extension SharedBranch {
  /// Requests other than commits: reads in the branch, and calls on accounts and mailboxes.
  enum Request: CaseIterable, Sendable {
    case log, state, records, kept, node, content, leafHashes
    case ticket, attachFromOtherNode, attach
    case sendMessage, listInbox, readInbox, deleteMessage, decideAboutSender
    case chain, appendLinkOfOwner, keyring, devices, removeDeviceOfOwner, audit
  }

  func attempt(_ request: Request, by role: Role) async throws -> Answer {
    let person = try person(role)
    let token = role == .unauthenticated ? nil : person.token
    let (owner, id) = (try self.person(.owner).account, zone.zone)
    func get(_ path: String) async throws -> Answer { try await server.send(.GET, path, token: token) }
    switch request {
    case .log: return try await get(path(Routes.zoneCommits) + "?records=1")
    case .state: return try await get(path(Routes.zoneState))
    case .records, .kept:
      let names = TestServer.recordNames([(file, zone.records[file]?.hash ?? .zero)])
      let pattern = request == .kept ? Routes.kept : Routes.records
      return try await server.send(.POST, path(pattern), token: token, body: names)
    case .node: return try await get(Routes.path(Routes.node, id.tree.text, file.text))
    case .content: return try await get(contentPath(Routes.content))
    case .leafHashes: return try await get(contentPath(Routes.leafHashes))
    case .ticket:
      let ticket = BlobTicketRequest(blobID: .random(), treeID: id.tree, nodeID: file, cipherLength: 200_000)
      return try await server.sendJSON(.POST, Routes.blobs, ticket, token: token)
    case .attach, .attachFromOtherNode:
      return try await attach(from: request == .attach ? document : id.root, by: role, token)
    case .sendMessage: return try await send(to: extra.account, token)
    case .listInbox, .readInbox, .deleteMessage, .decideAboutSender: return try await inbox(request, token)
    case .chain: return try await get(Routes.path(Routes.chain, owner.userID.text))
    case .appendLinkOfOwner:
      let append = AppendLinkRequest(link: WireBytes(try owner.rotation(to: SigningKey()).bytes))
      return try await server.sendJSON(.POST, Routes.links, append, token: token)
    case .keyring: return try await get(Routes.keyring)
    case .devices: return try await get(Routes.sessions)
    case .removeDeviceOfOwner:
      return try await server.send(.DELETE, Routes.path(Routes.sessionOfDevice, owner.deviceID.text), token: token)
    case .audit: return try await get(Routes.audit)
    }
  }

  private func path(_ pattern: String) -> String { Routes.path(pattern, zone.zone.tree.text, zone.zone.root.text) }

  private func contentPath(_ pattern: String) -> String {
    Routes.path(pattern, zone.zone.tree.text, document.text, content.blob.text)
  }

  /// Puts a node with the branch's content into the user's own home.
  private func attach(from node: NodeID, by role: Role, _ token: [UInt8]?) async throws -> Answer {
    let home = role == .owner ? home : try person(role).account.home
    let put = try home.put([home.record(.random(), content: content.field())]).body
    let source = AttachedContent(tree: zone.zone.tree, node: node, blob: content.blob)
    return try await server.send(
      .POST, Routes.commits, token: token, body: Bundle.attaching([source]) + put)
  }

  private func send(to recipient: TestAccount, _ token: [UInt8]?) async throws -> Answer {
    let inbox = try #require(recipient.zones[.inbox])
    let envelope = MessageEnvelope(
      id: .random(), recipient: recipient.userID, inbox: inbox.zone.tree, recipientEncGen: 1,
      sealed: randomBytes(1_200))
    var bundle = Bundle.Writer()
    bundle.append(envelope: envelope.bytes)
    return try await server.send(.POST, Routes.messages, token: token, body: bundle.bytes)
  }

  /// A request about the owner's mailbox.
  private func inbox(_ request: Request, _ token: [UInt8]?) async throws -> Answer {
    let tree = try #require(try person(.owner).account.zones[.inbox]).zone.tree
    let sender = extra.account.userID
    switch request {
    case .listInbox: return try await server.send(.GET, Routes.path(Routes.inbox, tree.text), token: token)
    case .readInbox:
      let names = MessageName.bytes(of: [MessageName(sender: sender, id: .random())])
      return try await server.send(.POST, Routes.path(Routes.inboxEnvelopes, tree.text), token: token, body: names)
    case .deleteMessage:
      let path = Routes.path(Routes.inboxMessage, tree.text, sender.text, MessageID.random().text)
      return try await server.send(.DELETE, path, token: token)
    default:
      let path = Routes.path(Routes.sender, tree.text, sender.text)
      return try await server.sendJSON(.PUT, path, SenderRequest(state: .accepted), token: token)
    }
  }
}
