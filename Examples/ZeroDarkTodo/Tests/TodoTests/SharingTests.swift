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

  @Test func anInvitationIsDeclined_onAllDevices() async throws {
    try await withPeople { people in
      let bob = people.bob
      try await people.invite()
      try await bob.account.people.accept(people.alice.account.user)
      try await bob.sync()
      let folder = try TemporaryFolder()
      let manager = try ZDCManager(
        server: people.server.url.absoluteString, folder: folder.url, syncsAutomatically: false)
      let phone = Device(manager: manager, account: try await manager.logIn(words: bob.account.words()))
      try await phone.sync()
      #expect(try await phone.invitations().map(\.title) == ["Groceries"])
      try await bob.account.decline(#require(try await bob.invitations().first).id)
      for device in [bob, phone] {
        try await device.sync()
        #expect(try await device.invitations() == [])
      }
      try await people.invite()
      for device in [bob, phone] { try await device.sync() }
      for device in [bob, phone] { #expect(try await device.invitations().count == 1) }
      // Each device accepts separately.
      for device in [bob, phone] { try await device.account.accept(#require(try await device.invitations().first).id) }
      for device in [bob, phone] { try await device.sync() }
      for device in [bob, phone] { #expect(try await device.lines() == ["- milk [normal]", "- bread [normal]"]) }
      try await manager.close()
    }
  }

  @Test func anAcceptanceThatWasInterrupted_isRepeated() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      try await people.invite()
      try await bob.account.people.accept(alice.account.user)
      try await bob.sync()
      let cloudID = try await alice.account.tree.read { [listID = alice.list("Groceries")] _, cloud in
        cloud.node(id: listID)?.cloudID ?? ""
      }
      // The process ended after the framework's part of it.
      try await bob.account.session.syncManager.acceptTree(
        ofUserID: alice.account.user, cloudID: cloudID, forLocalUserID: bob.account.user)
      try await bob.sync()
      #expect(try await bob.lists() == [])
      try await bob.account.accept(#require(try await bob.invitations().first).id)
      try await people.settle()
      #expect(try await bob.titles() == ["Groceries 0/2"])
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

  @Test func aMemberWhoIsRemoved_losesTheList_andTheOthersContinue() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      try await people.share()
      try await bob.edit("milk") { $0.title = "never sent" }
      try await alice.account.remove(bob.account.user, from: alice.list("Groceries"))
      try await alice.edit("milk") { $0.title = "secret" }
      try await alice.sync()
      try await bob.sync()
      #expect(try await bob.lists() == [])
      #expect(try await bob.invitations() == [])
      #expect(try await Self.objects(of: bob) == 0)
      #expect(try await bob.account.screen().activity.contains { $0.change.contains("no longer have access") })
      #expect(try await alice.members() == [:])
      // A new invitation begins a new copy.
      try await people.share()
      #expect(try await bob.lines() == ["- secret [normal]", "- bread [normal]"])
    }
  }

  @Test func aMemberLeaves() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      let listID = try await people.share()
      await #expect(throws: ZDCCloudError.self) { try await alice.account.leave(alice.list("Groceries")) }
      try await bob.account.leave(listID)
      for device in [bob, alice] { try await device.sync() }
      #expect(try await bob.lists() == [])
      #expect(try await bob.invitations() == [])
      #expect(try await Self.objects(of: bob) == 0)
      #expect(try await alice.members() == [:])
      #expect(try await alice.lines() == ["- milk [normal]", "- bread [normal]"])
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
      await #expect(throws: ZDCCloudError.self) { try await alice.account.deleteList(alice.list("Market")) }
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
      let folder = try TemporaryFolder()
      let manager = try ZDCManager(
        server: people.server.url.absoluteString, folder: folder.url, syncsAutomatically: false)
      let phone = Device(manager: manager, account: try await manager.logIn(words: alice.account.words()))
      try await phone.sync()
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
      try await manager.close()
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
      #expect(try await Self.objects(of: alice) == 4)
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

  private static let hostile = [
    "", "no JSON", "[]", "{}", #"{"kind":"list-invitation"}"#,
    #"{"kind":"list-invitation","title":"","cloudID":"ybndrfg8"}"#,
    #"{"kind":"list-invitation","title":"x","cloudID":""}"#,
    #"{"kind":"list-invitation","title":"x","cloudID":"../../home"}"#,
    #"{"kind":"list-invitation","title":7,"cloudID":"ybndrfg8"}"#,
    #"{"kind":"other","title":"x","cloudID":"ybndrfg8"}"#,
    #"{"kind":"list-invitation","title":"\#(String(repeating: "x", count: 1_025))","cloudID":"ybndrfg8"}"#,
    #"{"kind":"list-invitation","title":"x","cloudID":"ybndrfg8","more":"\#(String(repeating: "x", count: 20_000))"}"#,
    String(repeating: "[", count: 50_000),
  ]

  @Test func messagesThatAreNoInvitation_areIgnored_andInviteToNothing() async throws {
    try await withPeople { people in
      let (server, bob) = (people.server, people.bob)
      let title = "<b>Alice's list</b>\u{202E}\u{200B}"
      let listID = try await people.alice.account.tree.read { _, cloud in
        try cloud.trunkNode(.home).flatMap { try cloud.children(ofNodeID: $0.uuid).first }?.cloudID ?? ""
      }
      let wellFormed = try JSONEncoder().encode(InvitationCloudJSON(title: title, cloudID: listID))
      let sender = try await Stranger.send(
        Self.hostile.map { Data($0.utf8) } + [wellFormed], to: bob.account.user, on: server)
      #expect(try await bob.account.people.unknownSenders().map(\.messages) == [Self.hostile.count + 1])
      try await bob.account.people.accept(sender)
      #expect(try await bob.manager.sync(bob.account.user) == 0)
      let invitation = try #require(try await bob.invitations().first)
      #expect(try await bob.invitations().count == 1 && invitation.title == title)
      #expect(invitation.title.displayed == "<b>Alice's list</b>")
      // The list is in the tree of Alice. An invitation by another user gives no access to it.
      await #expect(throws: ServerError.self) { try await bob.account.accept(invitation.id) }
      #expect(try await bob.lists() == [])
      try await bob.account.decline(invitation.id)
      #expect(try await bob.manager.sync(bob.account.user) == 0)
      #expect(try await bob.invitations() == [])
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

  /// The number of the app's objects on a device.
  private static func objects(of device: Device) async throws -> Int {
    try await device.account.session.databaseManager.rwDatabaseConnection.read { transaction in
      try [List.collection, Task.collection, Invitation.collection].reduce(0) {
        try $0 + transaction.numberOfKeys(inCollection: $1)
      }
    }
  }
}
