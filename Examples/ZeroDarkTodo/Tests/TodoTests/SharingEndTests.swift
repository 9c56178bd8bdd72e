import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TodoKit

/// How a shared list ends for a guest with two devices: they leave, or the owner removes them or deletes the list.
@Suite(.timeLimit(.minutes(5))) struct SharingEndTests {
  /// Alice's list on two devices of Bob, with a photo.
  private func withTwoGuestDevices(
    _ body: @Sendable (_ people: People, _ phone: Device) async throws -> Void
  ) async throws {
    try await withPeople { people in
      try await people.share()
      let milk = try await people.bob.item("milk").id
      try await people.bob.account.attachPhoto(Data("photo".utf8), thumbnail: Data("small".utf8), to: milk)
      try await people.settle()
      try await people.withPhone(of: people.bob) { phone in
        #expect(try await phone.lines() == ["- milk [normal] +photo", "- bread [normal]"])
        try await body(people, phone)
      }
    }
  }

  /// Expects that nothing of the list is left on a guest's device.
  private func expectEnd(_ devices: Device...) async throws {
    for device in devices + devices { try await device.sync() }
    for device in devices {
      #expect(try await device.lists() == [])
      #expect(try await device.invitations() == [])
      #expect(try await device.objects() == 0)
      let manager = device.account.session.syncManager
      #expect(try await manager.syncState(forLocalUserID: device.account.user).pending.total == 0)
      let nodes = try await device.account.tree.read { _, cloud in
        try cloud.trunkNode(.home).map { try cloud.children(ofNodeID: $0.uuid).count }
      }
      #expect(nodes == 0)
    }
  }

  @Test func aListIsAcceptedOnOneDevice_andIsOnTheOther() async throws {
    try await withTwoGuestDevices { people, phone in
      let (alice, bob) = (people.alice, people.bob)
      #expect(try await phone.list("Groceries") == bob.list("Groceries"))
      try await phone.account.addTask("jam", to: phone.list("Groceries"))
      try await phone.account.renameList(phone.list("Groceries"), to: "Alice's list")
      try await phone.edit("bread") { $0.isDone = true }
      for device in [phone, alice, bob] { try await device.sync() }
      #expect(try await alice.titles() == ["Groceries 1/3"])
      #expect(try await bob.titles() == ["Alice's list 1/3"])
      #expect(try await phone.account.photos.data(of: phone.item("milk").id) == Data("photo".utf8))
      for device in [alice, bob, phone] { #expect(try await device.objects() == 4) }
    }
  }

  @Test func aMemberLeaves() async throws {
    try await withTwoGuestDevices { people, phone in
      let (alice, bob) = (people.alice, people.bob)
      await #expect(throws: ZDCError.self) { try await alice.account.leave(alice.list("Groceries")) }
      await #expect(throws: ZDCError.self) { try await bob.account.deleteList(bob.list("Groceries")) }
      try await bob.edit("milk") { $0.title = "never sent" }
      try await bob.account.leave(bob.list("Groceries"))
      #expect(try await bob.objects() == 0)
      try await expectEnd(bob, phone)
      for device in [bob, phone] { #expect(try await device.notices() == []) }
      try await alice.sync()
      #expect(try await alice.members() == [:])
      #expect(try await alice.lines() == ["- milk [normal] +photo", "- bread [normal]"])
      // A new invitation begins a new copy.
      try await people.share()
      try await phone.sync()
      #expect(try await phone.lines() == alice.lines())
    }
  }

  /// The engine runs, as it does for the page.
  @Test func aListThatWasLeft_isAcceptedAgain() async throws {
    try await withPeople { people in
      let (alice, folder) = (people.alice, try TemporaryFolder())
      let manager = try ZDCManager(server: people.server.url.absoluteString, folder: folder.url)
      let carol = Device(manager: manager, account: try await manager.createAccount().account)
      try await carol.account.people.meet(alice.account.user)
      for _ in 0..<3 {
        try await alice.account.share(alice.list("Groceries"), with: carol.account.user)
        try await alice.sync()
        if let sender = try await carol.account.people.unknownSenders().first {
          try await carol.account.people.accept(sender.id)
        }
        while try await carol.invitations().isEmpty { try await _Concurrency.Task.sleep(for: .milliseconds(20)) }
        let listID = try await carol.account.accept(#require(try await carol.invitations().first).id)
        while try await carol.titles() != ["Groceries 0/2"] {
          try await _Concurrency.Task.sleep(for: .milliseconds(20))
        }
        try await carol.account.leave(listID)
        while try await !alice.members().isEmpty { try await alice.sync() }
      }
      try await manager.close()
    }
  }

  @Test func aMemberIsRemoved_andTheOthersContinue() async throws {
    try await withTwoGuestDevices { people, phone in
      let (alice, bob) = (people.alice, people.bob)
      try await bob.edit("milk") { $0.title = "never sent" }
      try await alice.account.remove(bob.account.user, from: alice.list("Groceries"))
      try await alice.edit("milk") { $0.title = "secret" }
      try await alice.sync()
      try await expectEnd(bob, phone)
      for device in [bob, phone] {
        #expect(try await device.notices() == ["Groceries: you no longer have access to this list"])
      }
      let lost = try #require(try await bob.account.screen().activity.first { $0.kind == .conflict })
      #expect(lost.title == "milk" && lost.change == "not sent: you no longer have access" && !lost.canUndo)
      #expect(try await alice.members() == [:])
      try await people.share()
      #expect(try await bob.lines() == ["- secret [normal] +photo", "- bread [normal]"])
    }
  }

  @Test func theOwnerDeletesASharedList() async throws {
    try await withTwoGuestDevices { people, phone in
      let (alice, bob) = (people.alice, people.bob)
      try await bob.edit("milk") { $0.title = "never sent" }
      try await alice.account.deleteList(alice.list("Groceries"))
      #expect(try await alice.objects() == 0)
      try await alice.sync()
      try await expectEnd(bob, phone)
      try await expectEnd(alice)
      for device in [bob, phone] {
        #expect(try await device.notices() == ["Groceries: its owner has deleted this list"])
      }
      let lost = try #require(try await bob.account.screen().activity.first { $0.kind == .conflict })
      #expect(lost.title == "milk" && lost.change == "not sent: the list was deleted" && !lost.canUndo)
      #expect(try await alice.notices() == [])
      try await alice.account.createList("Groceries")
      try await people.share()
      #expect(try await bob.titles() == ["Groceries 0/0"])
    }
  }

  /// - Bob's phone is switched off when the list ends, and his laptop deletes the graft
  /// => the phone, whose engine then runs as it does for the page, shows why the list is gone
  @Test(arguments: [true, false]) func aDeviceThatWasOff_learnsWhyTheListIsGone(isRemoved: Bool) async throws {
    try await withPeople { people in
      try await people.share()
      let (alice, bob, folder) = (people.alice, people.bob, try TemporaryFolder())
      let server = people.server.url.absoluteString
      let before = try ZDCManager(server: server, folder: folder.url, syncsAutomatically: false)
      let user = try await before.logIn(words: bob.account.words()).user
      try await before.sync(user)
      try await before.close()
      let listID = try await alice.list("Groceries")
      if isRemoved {
        try await alice.account.remove(user, from: listID)
      } else {
        try await alice.account.deleteList(listID)
      }
      for device in [alice, bob, bob] { try await device.sync() }
      let after = try ZDCManager(server: server, folder: folder.url)
      let phone = Device(manager: after, account: try after.account(user))
      while try await !phone.lists().isEmpty { try await _Concurrency.Task.sleep(for: .milliseconds(20)) }
      let reason = isRemoved ? "you no longer have access to this list" : "its owner has deleted this list"
      #expect(try await phone.notices() == ["Groceries: \(reason)"])
      try await after.close()
    }
  }

  @Test func theOwnersOtherDevice_deletesAListThatWasShared() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      try await people.share()
      try await people.withPhone(of: alice) { phone in
        try await phone.account.remove(bob.account.user, from: phone.list("Groceries"))
        for device in [phone, bob, alice] { try await device.sync() }
        try await alice.account.deleteList(alice.list("Groceries"))
        for device in [alice, phone] { try await device.sync() }
        try await expectEnd(alice, phone, bob)
        #expect(try await phone.notices() == [])
      }
    }
  }

  @Test func aListThatIsDeletedBeforeItsInvitationWasSent_invitesToNothing() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      let listID = try await alice.list("Groceries")
      try await alice.account.share(listID, with: bob.account.user)
      try await alice.account.deleteList(listID)
      try await expectEnd(alice)
      try await bob.sync()
      #expect(try await bob.account.people.unknownSenders() == [])
    }
  }
}
