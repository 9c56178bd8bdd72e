import Foundation
import Testing
import ZeroDarkCloudTesting

/// Two people at two terminals.
@Suite(.timeLimit(.minutes(5))) struct SharingCommandTests {
  private struct People: Sendable {
    let (alice, bob): (CommandTests.Terminal, CommandTests.Terminal)
    let (aliceID, bobID): (String, String)
  }

  private func withPeople(_ body: (TestServer, People) async throws -> Void) async throws {
    let (server, temporary) = (try await TestServer.start(), try TemporaryFolder())
    let terminals = ["alice", "bob"].map {
      CommandTests.Terminal(folder: temporary.url.path + "/\($0)", server: server.url.absoluteString)
    }
    var users: [String] = []
    for terminal in terminals {
      try await terminal.run("account", "create")
      let list = try await terminal.run("account", "list", "--json").output
      users.append(try #require(try JSONDecoder().decode([String].self, from: Data(list.utf8)).first))
    }
    try await terminals[0].run("add", "Groceries", "milk", "bread")
    let people = People(alice: terminals[0], bob: terminals[1], aliceID: users[0], bobID: users[1])
    try await body(server, people)
    try await server.stop()
  }

  @Test func aListIsShared_acceptedEditedAndLeft() async throws {
    try await withPeople { _, people in
      let (alice, bob) = (people.alice, people.bob)
      let shared = try await alice.run("share", "Groceries", people.bobID, "--name", "Bob").output
      #expect(shared.hasPrefix("safety number with Bob:\n"))
      #expect(shared.filter(\.isNumber).count == 60)
      let inbox = try await bob.run("inbox").output
      #expect(inbox == "unknown user \(people.aliceID)  1 message\n")
      try await bob.run("accept", String(people.aliceID.dropLast()), expecting: 66)
      try await bob.run("accept", people.aliceID)
      #expect(try await bob.run("inbox").output == "Groceries  from \(people.aliceID)\n")
      try await bob.run("accept", "Groceries")
      #expect(try await bob.run("tasks", "Groceries").output == "1. [ ]  milk\n2. [ ]  bread\n")
      try await bob.run("done", "Groceries", "milk")
      #expect(try await alice.run("tasks", "Groceries").output == "1. [x]  milk\n2. [ ]  bread\n")
      let members = try await alice.run("members", "Groceries").output
      #expect(members == "\(people.aliceID)  owner  (you)\n\(people.bobID)  editor  Bob\n")
      try await bob.run("leave", "Groceries")
      for command in ["lists", "inbox"] { #expect(try await bob.run(command).output == "") }
      #expect(try await alice.run("members", "Groceries").output == "")
    }
  }

  @Test func aPersonIsFoundByTheirHandle() async throws {
    try await withPeople { _, people in
      let (alice, bob) = (people.alice, people.bob)
      #expect(try await bob.run("account", "handle").output == "no handle\n")
      try await bob.run("account", "handle", "b", expecting: 64)
      try await bob.run("account", "handle", "@Bob")
      #expect(try await bob.run("account", "handle").output == "@bob\n")
      #expect(try await bob.run("account", "handle", "--json").output == #"{"handle":"bob"}"# + "\n")
      try await alice.run("account", "handle", "bob", expecting: 73)
      try await alice.run("share", "Groceries", "@nobody", expecting: 66)
      try await bob.run("share", "Groceries", "@bob", expecting: 66)
      let shared = try await alice.run("share", "Groceries", "@bob").output
      #expect(shared.hasPrefix("safety number with @bob:\n"))
      let members = try await alice.run("members", "Groceries").output
      #expect(members == "\(people.aliceID)  owner  (you)\n\(people.bobID)  editor\n")
      try await bob.run("account", "handle", "")
      #expect(try await bob.run("account", "handle").output == "no handle\n")
    }
  }

  @Test func anInvitationIsDeclined_andAMemberRemoved() async throws {
    try await withPeople { _, people in
      let (alice, bob) = (people.alice, people.bob)
      try await alice.run("share", "Groceries", people.bobID)
      try await bob.run("accept", people.aliceID)
      try await bob.run("decline", "Groceries")
      #expect(try await bob.run("inbox").output == "")
      let again = try await alice.run("share", "Groceries", people.bobID, "--json").output
      #expect(again.contains(#""identity":"notVerified""#) && again.contains(people.bobID))
      let inbox = try await bob.run("inbox", "--json").output
      #expect(inbox.contains(#""title":"Groceries""#) && inbox.contains(#""unknownSenders":[]"#))
      try await bob.run("accept", "Groceries")
      try await alice.run("unshare", "Groceries", people.bobID)
      #expect(try await bob.run("lists").output == "")
      try await alice.run("unshare", "Groceries", people.bobID, expecting: 66)
    }
  }

  @Test func theOwnerDeletesASharedList_andTheMembersActivitySaysSo() async throws {
    try await withPeople { _, people in
      let (alice, bob) = (people.alice, people.bob)
      try await alice.run("share", "Groceries", people.bobID)
      try await bob.run("accept", people.aliceID)
      try await bob.run("accept", "Groceries")
      try await bob.run("rename", "Groceries", "Alice's")
      #expect(try await alice.run("lists").output.contains("Groceries"))
      try await alice.run("delete", "Groceries", "--all")
      for terminal in [alice, bob] { #expect(try await terminal.run("lists").output == "") }
      #expect(try await bob.run("activity").output.hasSuffix("Alice's: its owner has deleted this list\n"))
      #expect(try await bob.run("activity", "--json").output.contains(#""kind":"notice""#))
    }
  }

  @Test func whatIsNotAllowed_hasItsExitCode() async throws {
    try await withPeople { server, people in
      let (alice, bob) = (people.alice, people.bob)
      try await alice.run("share", "Groceries", people.bobID, "--read-only")
      try await bob.run("accept", people.aliceID)
      try await bob.run("accept", "Groceries")
      #expect(try await bob.run("members", "Groceries", "--json").output.contains(#""role":"reader""#))
      let refused = try await bob.run("add", "Groceries", "jam", "--json", expecting: 77)
      #expect(refused.errors.contains(#""code":"notAllowed""#))
      try await bob.run("share", "Groceries", people.aliceID, expecting: 77)
      try await alice.run("leave", "Groceries", expecting: 64)
      try await bob.run("delete", "Groceries", "--all", expecting: 64)
      try await alice.run("share", "Groceries", people.aliceID, expecting: 64)
      try await alice.run("share", "Groceries", "nobody", expecting: 66)
      try await alice.run("share", "Nothing", people.bobID, expecting: 66)
      try await bob.run("accept", "Groceries", expecting: 66)
      try await bob.run("decline", "y", "--block", expecting: 66)
      try await server.stop()
      try await alice.run("unshare", "Groceries", people.bobID, expecting: 75)
      #expect(try await bob.run("inbox").errors.contains("cannot be reached"))
    }
  }
}
