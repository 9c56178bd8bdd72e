import Testing
import ZDCProtocol

/// K-12: rights that narrow writing, as the server applies them to a member's commits.
@Suite struct NarrowedRightsTests {
  /// The owner's home with a member, and what both need for requests.
  private struct Shared {
    var zone: TestZone
    var token: [UInt8]
    var friend: TestAccount
    var friendToken: [UInt8]

    /// A commit request of the member.
    func request(
      _ operations: [ZoneOperation], _ records: [NodeRecord] = [], _ content: TestZone.Content? = nil
    )
      throws -> [UInt8]
    {
      let commit = try zone.commit(by: friend, operations, list: zone.acl)
      return TestZone.body(commit, records: records, contents: content.map { [$0] } ?? [])
    }

    func record(_ node: NodeID = .random(), content: NodeRecord.Content? = nil) -> NodeRecord {
      zone.record(node, content: content) { $0.writer = friend.userID }
    }

    func put(_ record: NodeRecord, _ content: TestZone.Content? = nil) throws -> [UInt8] {
      try request([.put(.init(record))], [record], content)
    }

    /// The request was taken.
    mutating func accepted(_ operations: [ZoneOperation], _ records: [NodeRecord] = []) throws {
      zone.accepted(try zone.commit(by: friend, operations, list: zone.acl), records: records)
    }
  }

  private func shared(_ server: TestServer, _ narrowing: ZoneACL.Permissions) async throws -> Shared {
    let (owner, token) = try await server.newAccount()
    let (friend, friendToken) = try await server.newAccount()
    var zone = owner.home
    let member = zone.member(friend.userID, [.read, .write, narrowing])
    zone.acl = try await server.share(&zone, with: member, token: token)
    return Shared(zone: zone, token: token, friend: friend, friendToken: friendToken)
  }

  private func refusal(
    _ server: TestServer, _ shared: Shared, _ body: [UInt8]
  ) async throws
    -> ZDCSecurityError.Code?
  {
    let answer = try await server.commit(body, token: shared.friendToken)
    guard answer.status != 200 else { return nil }
    #expect(answer.status == 422)
    return answer.error?.security
  }

  /// - A member with `R` puts a record with content, then the same without
  /// => only the second is taken; the member reads content of others
  @Test("R: a record with content is refused, and content of others is read")
  func recordsOnly() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      var shared = try await shared(server, .recordsOnly)
      let content = TestZone.Content()
      let file = shared.zone.record(.random(), content: content.field())
      let commit = try shared.zone.commit([.put(.init(file))])
      let body = TestZone.body(commit, records: [file], contents: [content])
      _ = try await server.commit(body, token: shared.token).expect(200)
      shared.zone.accepted(commit, records: [file])
      let own = TestZone.Content()
      let with = shared.record(content: own.field())
      #expect(try await refusal(server, shared, try shared.put(with, own)) == .writerNotAuthorized)
      #expect(try await refusal(server, shared, try shared.put(shared.record())) == nil)
      let path = Routes.path(
        Routes.content, shared.zone.zone.tree.text, file.fields.node.text, content.blob.text)
      let read = try await server.send(.GET, path, token: shared.friendToken)
      #expect(read.status == 200 && read.bytes == content.bytes)
    }
  }

  /// - A member with `W` puts a node, changes it and deletes it; the same with `W` and `B`
  /// => `W` only puts it; with `B`, the member deletes what they put themselves
  @Test("W, B: a member with create only deletes at most what they put", arguments: [false, true])
  func createOnly(mayBurn: Bool) async throws {
    try await TestServer.run { (server: TestServer) async throws in
      var shared = try await shared(server, mayBurn ? [.writeOnce, .burnIfSender] : .writeOnce)
      let (one, two) = (shared.record(), shared.record())
      let puts: [ZoneOperation] = [.put(.init(one)), .put(.init(two))]
      #expect(try await refusal(server, shared, try shared.request(puts, [one, two])) == nil)
      try shared.accepted(puts, [one, two])
      let node = two.fields.node
      #expect(try await refusal(server, shared, try shared.put(shared.record(node))) == .writerNotAuthorized)
      // The owner has changed the second one since.
      let changed = shared.zone.record(node)
      let commit = try shared.zone.commit([.put(.init(changed))])
      let body = TestZone.body(commit, records: [changed])
      _ = try await server.commit(body, token: shared.token).expect(200)
      shared.zone.accepted(commit, records: [changed])
      func delete(_ record: NodeRecord) throws -> [UInt8] {
        try shared.request([.delete(node: record.fields.node, record: record.hash, liveDescendants: 0)])
      }
      #expect(try await refusal(server, shared, try delete(changed)) == .writerNotAuthorized)
      #expect(try await refusal(server, shared, try delete(one)) == (mayBurn ? nil : .writerNotAuthorized))
    }
  }

  @Test("U: a member puts the node that is named after them, and no other")
  func ownChild() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let shared = try await shared(server, .userOnly)
      #expect(try await refusal(server, shared, try shared.put(shared.record())) == .writerNotAuthorized)
      let own = NodeID.child(of: shared.zone.zone, for: shared.friend.userID)
      #expect(try await refusal(server, shared, try shared.put(shared.record(own))) == nil)
    }
  }
}
