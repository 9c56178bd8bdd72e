import Foundation
import Testing
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Invitations by members who may share, but are not the owner.
struct MemberInvitationTests {
  typealias Invited = GraftTests.Invited

  /// - Bob, who may share Alice's list, shares it with Carol, and invites her; she does not know Alice
  /// => Carol has the list, as a branch of Alice, whose name for it stays Alice's own
  @Test func aMemberInvites() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world, "rws")
      let (alice, bob, carol) = (invited.alice, invited.bob, invited.people.carol)
      let owner = try alice.localUserID
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await bob.sync()
      try await bob.meet(carol)
      try await carol.acceptMessages(of: bob)
      let queued = try await bob.share("/Groceries", with: carol)
      try await bob.send("join", to: carol, after: queued)
      try await bob.sync()
      try await carol.sync()
      #expect(try await carol.messages(from: bob) == ["bob: join"])
      #expect(try await carol.database.read { $0.user(id: owner) } == nil)
      let invite = try await bob.invite("/Groceries")
      #expect(invite.cloudPath.ownerID == owner && invite.cloudID == invited.invite.cloudID)
      let node = try await carol.graft("/list", invite, from: bob)
      try await invited.expectEqual("/list", on: carol)
      #expect(try await carol.node("/list").uuid == node.uuid)
      #expect(try await carol.node("/list").anchor?.userID == owner)
      #expect(try await carol.database.read { $0.user(id: owner) } != nil)
      try await alice.rename("/Groceries", to: "Shopping")
      try await carol.create("/list/H", "honey")
      try await invited.expectEqual("/list", on: carol, remote: "/Shopping")
      try await invited.expectEqual("/Groceries", on: bob, remote: "/Shopping")
      #expect(try await alice.members(bob, carol, of: "/Shopping") == ["bob": "rws", "carol": "rw"])
      #expect(try await alice.content(of: "/Shopping/H")?.data == Data("honey".utf8))
    }
  }
}
