import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Who gets the key of a shared tree.
struct RecipientTests {
  /// - the server refuses a new access list as often as it likes, and names another user whose key is stale
  /// => the list has those members that the owner added, and no key is sealed to anyone else
  @Test func aUserWhomOnlyTheServerNames_getsNoKey() async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let alice = try await TestDevice("alice", server: world.server, clock: world.clock, through: hostile)
      _ = try await alice.createAccount()
      let (bob, eve) = (try await world.device("bob", account: "bob"), try await world.device("eve", account: "eve"))
      try await alice.create("/list", "milk")
      try await alice.sync()
      try await alice.meet(bob)
      let refusal =
        #"{"code":"recipientKeyStale","message":"by script","retryable":false,"user":"\#(try eve.localUserID)"}"#
      hostile.tell(.fabricate("POST", Routes.commits, status: 422, json: refusal), times: 2)
      try await alice.share(with: bob)
      for _ in 0..<4 {
        _ = try? await alice.sync()
        world.clock.advance(by: .seconds(3_600))
      }
      #expect(hostile.liesTold == 2)
      #expect(try await alice.members(bob, eve) == ["bob": "rw"])
      let allowed = Set([try alice.userID, try bob.userID])
      #expect(try Self.recipients(hostile.requests).subtracting(allowed).isEmpty)
      #expect(try Self.recipients(hostile.requests).contains(try bob.userID))
      try await bob.accept(alice)
      try await bob.download()
      #expect(try await bob.tree(of: alice) == "/list  \"milk\"")
      await #expect(throws: (any Error).self) { try await eve.accept(alice) }
      try await alice.close()
    }
  }

  /// The users for whom a request has a grant, or whom one of its access lists names.
  private static func recipients(_ requests: [HostileServer.HeardRequest]) throws -> Set<UserID> {
    var found: Set<UserID> = []
    for request in requests where request.route.pattern == Routes.commits && request.route.method == "POST" {
      var reader = ZDCProtocol.Bundle.Reader(request.body)
      while let item = try reader.next() {
        if case .grant(let grant) = item { found.insert(grant.user) }
        if case .acl(let list) = item { found.formUnion(list.fields.entries.map(\.user)) }
      }
    }
    return found
  }
}
