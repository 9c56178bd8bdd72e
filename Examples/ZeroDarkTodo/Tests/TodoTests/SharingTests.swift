import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TodoKit

/// Two people, each with an account and a device, and a real server between them.
@Suite(.timeLimit(.minutes(5))) struct SharingTests {
  @Test func aListIsShared_andBothEditIt() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      let listID = try await people.share()
      #expect(try await bob.titles() == ["Groceries 0/2"])
      #expect(try await bob.lines(listID) == ["- milk [normal]", "- bread [normal]"])
      try await bob.edit("milk") { $0.isDone = true }
      try await bob.account.addTask("jam", to: listID)
      try await alice.edit("milk") { $0.details = "two bottles" }
      try await people.settle()
      #expect(try await alice.lines() == ["x milk: two bottles [normal]", "- bread [normal]", "- jam [normal]"])
      for device in [alice, bob] { #expect(try await device.titles() == ["Groceries 1/3"]) }
      try await alice.account.deleteTask(alice.item("jam").id)
      try await alice.account.attachPhoto(Data("photo".utf8), thumbnail: nil, to: alice.item("milk").id)
      try await people.settle()
      #expect(try await bob.account.photos.data(of: bob.item("milk").id) == Data("photo".utf8))
    }
  }

  @Test func bothSeeWhoHasAccess_andTheSameSafetyNumber() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice.account, people.bob.account)
      #expect(try await people.alice.members() == [:])
      try await people.share()
      let members = [alice.user: "owner", bob.user: "edit"]
      for device in [people.alice, people.bob] { #expect(try await device.members() == members) }
      let (theirs, mine) = (try alice.people.person(bob.user), try bob.people.person(alice.user))
      #expect(theirs.safetyNumber == mine.safetyNumber && theirs.safetyNumber.count == 12)
      #expect(theirs.identity == .seen && theirs.label == String(bob.user.prefix(8)))
      try await alice.people.verify(bob.user)
      try await alice.people.setName("Bob", of: bob.user)
      let known = try #require(try await people.alice.lists().first?.members.first { !$0.isUser }?.person)
      #expect(known.identity == .verified(link: 0) && known.label == "Bob")
      try await alice.people.setName("", of: bob.user)
      #expect(try alice.people.person(bob.user).name == nil)
    }
  }

  @Test func theNameThatAPersonHasChosen_isShown_unlessTheUserHasGivenThemAnother() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice.account, people.bob.account)
      try await people.share()
      try await alice.people.setOwnName("Alice A.")
      try await people.settle()
      let label = "“Alice A.” (\(alice.user.prefix(8)))"
      #expect(try bob.people.person(alice.user).label == label)
      #expect(try await people.bob.lists().first?.members.first { !$0.isUser }?.person.label == label)
      // It is not mistaken for a handle, which no two users have.
      try await alice.people.setOwnName("@bank”“")
      try await people.settle()
      #expect(try bob.people.person(alice.user).label == "“@bank” (\(alice.user.prefix(8)))")
      try await bob.people.setName("Ally", of: alice.user)
      #expect(try bob.people.person(alice.user).label == "Ally")
    }
  }

  /// - Alice is unknown to Bob
  /// => her invitation is a request with her ID and nothing else, until Bob accepts her
  @Test func aStrangersInvitation_waits() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      try await people.invite()
      try await bob.sync()
      #expect(try await bob.invitations() == [])
      let senders = try await bob.account.people.unknownSenders()
      #expect(senders.map(\.id) == [alice.account.user] && senders.map(\.messages) == [1])
      try await bob.account.people.accept(alice.account.user)
      try await bob.sync()
      let invitation = try #require(try await bob.invitations().first)
      #expect(invitation.title == "Groceries" && invitation.sender.id == alice.account.user)
      #expect(try await bob.account.people.unknownSenders() == [])
      #expect(try await bob.lists() == [])
      let outbox = try await alice.account.tree.read { _, cloud in
        try cloud.trunkNode(.outbox).map { try cloud.children(ofNodeID: $0.uuid).count }
      }
      #expect(outbox == 0)
    }
  }

  @Test(arguments: [false, true])
  func aStrangerIsDeclined(isBlocking: Bool) async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice.account, people.bob)
      try await people.invite()
      try await bob.account.people.decline(alice.user, isBlocking: isBlocking)
      #expect(try await bob.account.people.unknownSenders() == [])
      try await people.invite()  // again
      #expect(try await bob.account.people.unknownSenders().count == (isBlocking ? 0 : 1))
      let pending = try await alice.session.syncManager.syncState(forLocalUserID: alice.user).pending.total
      #expect(pending == (isBlocking ? 1 : 0))
      try await alice.remove(bob.account.user, from: people.alice.list("Groceries"))
      try await people.alice.sync()
      let left = try await alice.session.syncManager.syncState(forLocalUserID: alice.user).pending.total
      #expect(left == 0)
    }
  }

  /// - Alice has verified Bob, and his words change
  /// => she cannot add him to another list before she accepts that; the list that he has stays
  @Test func newWordsOfAVerifiedPerson_areAcceptedFirst() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice.account, people.bob)
      try await people.share()
      try await alice.people.verify(bob.account.user)
      _ = try await bob.account.session.localUserManager.changeAccessWords(for: bob.account.user)
      let garden = try await alice.createList("Garden")
      let error = await #expect(throws: ZDCSecurityError.self) { try await alice.share(garden, with: bob.account.user) }
      #expect(error?.code == .identityChangedNeedsAcceptance)
      #expect(try alice.people.person(bob.account.user).identity == .changed)
      try await alice.people.acceptNewWords(of: bob.account.user)
      try await alice.share(garden, with: bob.account.user)
      try await people.alice.sync()
      try await bob.sync()
      #expect(try await bob.invitations().map(\.title) == ["Garden"])
      try await people.settle()
    }
  }

  @Test func aReaderChangesNothing_untilTheOwnerAllowsIt() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      let listID = try await people.share(canEdit: false)
      #expect(try await bob.lists().first?.canEdit == false)
      #expect(try await bob.members()[bob.account.user] == "read")
      await #expect(throws: ZDCCloudError.self) { try await bob.account.addTask("jam", to: listID) }
      await #expect(throws: (any Error).self) { try await bob.edit("milk") { $0.isDone = true } }
      await #expect(throws: (any Error).self) { try await bob.account.deleteTask(bob.item("milk").id) }
      await #expect(throws: ZDCCloudError.self) {
        try await bob.account.share(listID, with: people.alice.account.user)
      }
      try await people.settle()
      #expect(try await bob.lines() == ["- milk [normal]", "- bread [normal]"])
      try await alice.account.share(alice.list("Groceries"), with: bob.account.user, canEdit: true)
      for device in [alice, bob] { try await device.sync() }
      #expect(try await bob.invitations() == [])
      try await bob.edit("milk") { $0.isDone = true }
      try await people.settle()
      #expect(try await alice.lines().first == "x milk [normal]")
    }
  }

  @Test func titlesOfBothAreIndependent_andTasksMoveBetweenLists() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      let listID = try await people.share()
      try await bob.account.renameList(listID, to: "Alice's groceries")
      try await alice.account.renameList(alice.list("Groceries"), to: "Market")
      try await bob.account.attachPhoto(Data("photo".utf8), thumbnail: Data("small".utf8), to: bob.item("milk").id)
      let own = try await bob.account.createList("Own")
      try await bob.account.moveTask(bob.item("milk").id, toList: own)
      for device in [bob, alice, bob] { try await device.sync() }
      #expect(try await bob.titles() == ["Alice's groceries 0/1", "Own 0/1"])
      #expect(try await alice.titles() == ["Market 0/1"])
      #expect(try await bob.account.photos.data(of: bob.item("milk").id) == Data("photo".utf8))
      #expect(try await bob.account.photos.thumbnail(of: bob.item("milk").id) == Data("small".utf8))
      try await bob.account.moveTask(bob.item("milk").id, toList: listID)
      for device in [bob, alice] { try await device.sync() }
      #expect(try await alice.lines() == ["- bread [normal]", "- milk [normal] +photo"])
    }
  }

  @Test func aConflictBetweenPeople_isResolvedLikeOneBetweenDevices() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      let listID = try await people.share()
      try await alice.edit("milk") { ($0.title, $0.priority) = ("oat milk", .high) }
      try await bob.edit("milk") { ($0.title, $0.isDone) = ("soy milk", true) }
      try await alice.account.addTask("jam", to: alice.list("Groceries"))
      try await bob.account.addTask("tea", to: listID)
      try await bob.account.deleteTask(bob.item("bread").id)
      try await alice.sync()
      try await people.settle()
      // Jam and tea have one place, and their random names decide about the order, which is the same for both people.
      #expect(try await alice.lines().first == "x oat milk [high]")
      #expect(try await Set(alice.lines().dropFirst()) == ["- jam [normal]", "- tea [normal]"])
      #expect(try await alice.titles() == ["Groceries 1/3"])
      #expect(try await bob.titles() == ["Groceries 1/3"])
      let loss = try #require(try await bob.account.screen().activity.first { $0.kind == .loss })
      try await bob.account.undo(loss.id)
      try await people.settle()
      #expect(try await alice.lines().first == "x soy milk [high]")
    }
  }

  @Test func theOwnersOtherDevice_showsMembersAndRemovesThem() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      try await people.share()
      try await people.withPhone(of: alice) { phone in
        #expect(try await phone.members() == alice.members())
        #expect(try await phone.lists().first?.isOwn == true)
        try await phone.edit("milk") { $0.isDone = true }
        try await phone.sync()
        try await people.settle()
        #expect(try await bob.lines().first == "x milk [normal]")
        try await phone.account.remove(bob.account.user, from: phone.list("Groceries"))
        for device in [phone, bob, alice] { try await device.sync() }
        #expect(try await bob.lists() == [])
        #expect(try await alice.members() == [:])
      }
    }
  }

  @Test func twoAccountsOfOneDevice_shareAList() async throws {
    try await withPeople { people in
      let alice = people.alice
      let second = Device(manager: alice.manager, account: try await alice.manager.createAccount().account)
      try await alice.account.share(alice.list("Groceries"), with: second.account.user)
      for device in [alice, second] { try await device.sync() }
      try await second.account.people.accept(alice.account.user)
      try await second.sync()
      #expect(try await alice.invitations() == [])
      let listID = try await second.account.accept(#require(try await second.invitations().first).id)
      try await second.sync()
      try await second.account.addTask("jam", to: listID)
      for device in [second, alice] { try await device.sync() }
      #expect(try await alice.lines() == ["- milk [normal]", "- bread [normal]", "- jam [normal]"])
      #expect(try await second.lines() == alice.lines())
      try await alice.manager.removeAccount(second.account.user)
      #expect(try await alice.lines().count == 3)
      #expect(try await alice.objects() == 4)
    }
  }

  @Test func anInvitationThatWasNotSent_isWithdrawnWithTheAccess() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      let listID = try await alice.list("Groceries")
      for _ in 0..<2 { try await alice.account.share(listID, with: bob.account.user) }
      try await alice.account.remove(bob.account.user, from: listID)
      try await alice.sync()
      try await bob.sync()
      #expect(try await bob.account.people.unknownSenders() == [])
      #expect(try await alice.members() == [:])
    }
  }

  @Test func onlyAnotherExistingUserCanBeInvited() async throws {
    try await withPeople { people in
      let (alice, listID) = (people.alice.account, try await people.alice.list("Groceries"))
      let unknown = String(alice.user.dropLast(8) + "yyyyyyyy")
      for user in ["", "bob", alice.user, unknown, "\(alice.user)\u{200B}"] {
        await #expect(throws: (any Error).self) { try await alice.share(listID, with: user) }
      }
      try await people.alice.sync()
      #expect(try await people.alice.members() == [:])
    }
  }
}
