import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TodoKit

/// Invitations: answers on several devices, and messages of any content.
@Suite(.timeLimit(.minutes(5))) struct InvitationTests {
  @Test func anInvitationIsDeclined_onAllDevices_andAcceptedLater() async throws {
    try await withPeople { people in
      let bob = people.bob
      try await people.invite()
      try await bob.account.people.accept(people.alice.account.user)
      try await bob.sync()
      try await people.withPhone(of: bob) { phone in
        #expect(try await phone.invitations().map(\.title) == ["Groceries"])
        try await bob.account.decline(#require(try await bob.invitations().first).id)
        for device in [bob, phone] {
          try await device.sync()
          #expect(try await device.invitations() == [])
        }
        try await people.invite()
        for device in [bob, phone] {
          try await device.sync()
          #expect(try await device.invitations().count == 1)
        }
        try await bob.account.accept(#require(try await bob.invitations().first).id)
        for device in [bob, phone] {
          try await device.sync()
          #expect(try await device.invitations() == [])
          #expect(try await device.lines() == ["- milk [normal]", "- bread [normal]"])
        }
      }
    }
  }

  /// - two devices of Bob accept before they see each other's answer
  /// => one list on both, with one object
  @Test func bothDevicesAccept() async throws {
    try await withPeople { people in
      let bob = people.bob
      try await people.invite()
      try await bob.account.people.accept(people.alice.account.user)
      try await bob.sync()
      try await people.withPhone(of: bob) { phone in
        for device in [bob, phone] {
          try await device.account.accept(#require(try await device.invitations().first).id)
        }
        for device in [bob, phone, bob, phone] { try await device.sync() }
        for device in [bob, phone] {
          #expect(try await device.titles() == ["Groceries 0/2"])
          #expect(try await device.objects() == 3)
        }
        try await people.settle()
      }
    }
  }

  /// The list has its title before it has been received. It takes no tasks, but can be renamed, and left.
  @Test func anInvitationIsAcceptedWithoutANetwork() async throws {
    try await withPeople { people in
      let bob = people.bob
      try await bob.account.createList("Groceries")
      try await people.invite()
      try await bob.account.people.accept(people.alice.account.user)
      try await bob.sync()
      try await people.server.stop()
      let listID = try await bob.account.accept(#require(try await bob.invitations().first).id)
      let list = try #require(try await bob.lists().first { $0.id == listID })
      #expect(list.title == "Groceries 2" && list.isArriving && !list.isOwn && !list.canEdit)
      #expect(list.badges.contains(.needsDownload) && list.members == [])
      #expect(try await bob.invitations() == [])
      await #expect(throws: ZDCCloudError.self) { try await bob.account.addTask("jam", to: listID) }
      try await bob.account.renameList(listID, to: "Food")
      #expect(try await bob.lists().map(\.title) == ["Food", "Groceries"])
      try await bob.account.leave(listID)
      #expect(try await bob.lists().map(\.title) == ["Groceries"])
      #expect(try await bob.objects() == 1)
    }
  }

  @Test func aMemberWhoIsInvitedAgain_isNotAsked() async throws {
    try await withPeople { people in
      let bob = people.bob
      let listID = try await people.share()
      try await people.invite()
      try await bob.sync()
      #expect(try await bob.invitations() == [])
      try await bob.account.leave(listID)
      try await bob.sync()
      #expect(try await bob.invitations() == [])
    }
  }

  /// - Bob has left, which Alice's device does not know when she invites him again
  /// => the invitation waits until she shares the list again
  @Test func aMemberWhoHasLeft_isInvitedAgain() async throws {
    try await withPeople { people in
      let bob = people.bob
      try await bob.account.leave(people.share())
      try await bob.sync()
      try await people.invite()
      try await bob.sync()
      #expect(try await people.alice.members() == [:])
      #expect(try await bob.invitations() == [])
      try await people.share()
    }
  }

  /// - Alice removes Bob before he answers
  /// => he learns that when he accepts
  @Test func anInvitationWithoutAccess_isAccepted() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      try await people.invite()
      try await bob.account.people.accept(alice.account.user)
      try await bob.sync()
      try await alice.account.remove(bob.account.user, from: alice.list("Groceries"))
      try await alice.sync()
      try await bob.account.accept(#require(try await bob.invitations().first).id)
      try await bob.sync()
      #expect(try await bob.lists() == [])
      #expect(try await bob.objects() == 0)
      #expect(try await bob.notices() == ["Groceries: you no longer have access to this list"])
      #expect(try await alice.members() == [:])
    }
  }

  // MARK: Messages of any content

  private static func hostile(_ invite: ZDCGraftInvite) -> [String] {
    let (id, path) = (invite.cloudID, invite.cloudPath.path())
    let long = String(repeating: "x", count: 20_000)
    let parts = { (title: String, id: String, path: String) in
      "{\"kind\":\"list-invitation\",\"title\":\(title),\"cloudID\":\"\(id)\",\"cloudPath\":\"\(path)\"}"
    }
    return [
      "", "no JSON", "[]", "{}", #"{"kind":"list-invitation"}"#, String(repeating: "[", count: 50_000),
      parts(#""""#, id, path), parts("7", id, path), parts(#""a\u0000b""#, id, path),
      parts("\"\(long.prefix(1_025))\"", id, path), parts("\"\(long)\"", id, path),
      parts(#""x""#, "", path), parts(#""x""#, "../../home", path), parts(#""x""#, String(id.reversed()), path),
      parts(#""x""#, id, ""), parts(#""x""#, id, "x"), parts(#""x""#, id, String(path.dropLast())),
      parts(#""x""#, id, path).replacing("list-invitation", with: "other"),
    ]
  }

  @Test func messagesThatAreNoInvitation_areIgnored_andInviteToNothing() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      try await people.invite()
      let invite = try await alice.account.tree.read { [listID = alice.list("Groceries")] _, cloud in
        try #require(cloud.node(id: listID).flatMap(cloud.graftInvite(for:)))
      }
      let (wellFormed, hostile) = (
        try JSONEncoder().encode(InvitationCloudJSON(title: "x", invite: invite)), Self.hostile(invite)
      )
      #expect(InvitationCloudJSON(message: wellFormed, from: alice.account.user)?.invite == invite)
      for text in hostile {
        #expect(InvitationCloudJSON(message: Data(text.utf8), from: alice.account.user) == nil, "\(text.prefix(99))")
      }
      // The list is Alice's. An invitation to it by another user is ignored, although Bob has access.
      let sender = try await Stranger.send(
        hostile.map { Data($0.utf8) } + [wellFormed], to: bob.account.user, on: people.server)
      try await bob.account.people.accept(sender)
      #expect(try await bob.manager.sync(bob.account.user) == 0)
      #expect(try await bob.invitations() == [])
      #expect(try await bob.account.people.unknownSenders().map(\.id) == [alice.account.user])
      #expect(try await bob.objects() == 0)
    }
  }

  @Test func aTitleIsText() async throws {
    try await withPeople { people in
      let title = "<b>a/b: ../x</b>\u{202E}\u{200B}"
      try await people.alice.account.createList(title)
      try await people.share(title)
      #expect(try await people.bob.lists().map(\.title) == [title])
      #expect(title.displayed == "<b>a/b: ../x</b>")
    }
  }

  /// - Alice, whom Bob knows, invites him to another list, and declares her key compromised before he syncs
  /// => the invitation waits with her name, and is no request of an unknown person
  /// - Bob accepts her again
  /// => he has the invitation
  @Test func anInvitationUnderACompromisedKey_waitsWithThePersonsName() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      try await people.share()
      try await bob.account.people.setName("Alice", of: alice.account.user)
      #expect(try await bob.account.people.unknownSenders() == [])
      try await alice.account.createList("Party")
      try await people.invite("Party")
      try await alice.account.session.localUserManager.rotateKeys(for: alice.account.user, areCompromised: true)
      try await alice.sync()
      try await bob.sync()
      let sender = try #require(try await bob.account.people.unknownSenders().first)
      #expect(sender.id == alice.account.user && sender.person?.name == "Alice" && sender.messages == 1)
      #expect(try await bob.invitations() == [])
      try await bob.account.people.accept(alice.account.user)
      try await bob.sync()
      #expect(try await bob.invitations().map(\.title) == ["Party"])
      #expect(try await bob.account.people.unknownSenders() == [])
    }
  }
}
