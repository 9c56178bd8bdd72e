import Testing
import ZDCSync
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Several accounts in one database.
struct LocalUserTests {
  @Test func twoAccounts_onOneDevice_doNotSeeEachOther() async throws {
    try await TestWorld.run { world in
      let alice = try await world.device("A", account: "alice")
      let bob = try await world.device("B", account: "bob")
      let words = try #require(world.words(of: "bob"))
      let bobOnA = try await alice.login(words: words)
      try await alice.pull(user: bobOnA)
      try await alice.create("/same", "alice's")
      try await alice.create("/same", "bob's", user: bobOnA)
      try await alice.sync()
      try await alice.sync(user: bobOnA)
      try await world.settle(bob)
      #expect(try await bob.tree() == "/same  v1  \"bob's\"")
      #expect(try await alice.tree() == "/same  v1  \"alice's\"")
      #expect(try await alice.tree(user: bobOnA) == "/same  v1  \"bob's\"")
      #expect(try world.server.nodeCount() == 2)
    }
  }

  /// - Alice shares a list with Bob, who is a local user of the same device and has another one
  /// => both see each other's changes on it, and one of them can leave the device without the other
  @Test(arguments: [false, true]) func ownerAndGuest_onOneDevice(theOwnerIsRemoved: Bool) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let other = try await world.device("B", account: "bob")
      let (alice, bob) = (try a.localUserID, try await a.login(words: try #require(world.words(of: "bob"))))
      try await a.meet(other)
      @Sendable func settle() async throws {
        for _ in 0..<3 {
          for user in try await a.knownAccounts() {
            try await a.sync(user: user)
            try await a.download(user: user)
          }
          try await world.settle(other)
        }
      }
      try await settle()
      try await a.create("/list", "Alice's")
      try await a.create("/list/milk", "1 l")
      try await a.share("/list", with: other)
      try await settle()
      let invite = try await a.invite("/list")
      try await a.write(user: bob) { _, cloud in
        let path = ZDCTreesystemPath(pathComponents: ["groceries"])
        let owner = try #require(cloud.user(id: alice))
        try cloud.graftNode(
          withLocalPath: path, remoteCloudPath: invite.cloudPath, remoteCloudID: invite.cloudID, remoteUser: owner)
      }
      try await settle()
      try await a.create("/groceries/bread", "by Bob", user: bob)
      try await a.edit("/list/milk", "by Alice")
      try await other.create("/groceries/eggs", "by Bob's other device")
      try await settle()
      let items = "/bread  \"by Bob\"\n/eggs  \"by Bob's other device\"\n/milk  \"by Alice\""
      #expect(try await a.branch("/list") == items)
      #expect(try await a.tree(user: bob) == other.tree())
      #expect(try await other.branch("/groceries") == items)
      #expect(try await a.queueCount() == 0)

      let manager = try #require(try a.zdc.localUserManager)
      try await manager.delete(theOwnerIsRemoved ? alice : bob)
      try await other.edit("/groceries/eggs", "six")
      if theOwnerIsRemoved {
        try await other.sync()
        try await a.sync(user: bob)
        try await a.download(user: bob)
        #expect(try await a.tree(user: bob) == other.tree())
        world.mayWait(a)
      } else {
        try await world.settle(other, a)
        #expect(try await a.branch("/list") == other.branch("/groceries"))
      }
      #expect(try await a.securityErrors() == [])
    }
  }

  /// - Alice and Bob are local users of one device, who have not met otherwise; she sends him a message about a list
  /// => he finds it there with its sender, and on his other device; the message counts as sent once
  @Test func aMessageFromOneLocalUserToAnother_arrives() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let other = try await world.device("B", account: "bob")
      let (alice, bob) = (try a.localUserID, try await a.login(words: try #require(world.words(of: "bob"))))
      for user in [alice, bob] { try await a.sync(user: user) }
      try await a.create("/list", "milk")
      // No device has fetched Bob's identity chain for Alice: he is known because he is a local user.
      try await a.send("join", to: other, after: try await a.share("/list", with: other))
      try await a.sync()
      #expect(a.recorder.take().filter { $0.hasPrefix("sent") } == ["sent join"])
      try await a.syncManager.acceptMessages(fromUserID: alice, forLocalUserID: bob)
      try await a.sync(user: bob)
      let found = try await a.write(user: bob) { _, cloud in
        let messages = try cloud.trunkNode(.inbox).map { try cloud.children(ofNodeID: $0.uuid) } ?? []
        return (senders: messages.map(\.senderID), isSenderKnown: cloud.user(id: alice) != nil)
      }
      #expect(found.senders == [alice] && found.isSenderKnown)
      try await other.sync()
      #expect(try await other.messages(from: a) == ["A: join"])
      #expect(try await a.messages() == [])
      #expect(try await a.messages(.outbox) == ["me: join"])
    }
  }

  @Test func deletedAccount_takesItsTree_andLeavesTheOther() async throws {
    try await TestWorld.run { world in
      let device = try await world.device("A")
      _ = try await world.device("B", account: "bob")
      let bob = try await device.login(words: try #require(world.words(of: "bob")))
      try await device.create("/mine", "1")
      try await device.sync()
      try await device.pull(user: bob)
      try await device.create("/his", "2", user: bob)
      let manager = try #require(try device.zdc.localUserManager)
      await #expect(throws: ZDCError.self) { try await manager.delete(bob) }
      try await manager.delete(bob, force: true)
      #expect(try await device.tree() == "/mine  v1  \"1\"")
      #expect(try await device.queueCount() == 0)
    }
  }

  /// - an account is removed after a sync, and logs in again
  /// => until then a sync reports that it is missing; afterwards its changes are pushed, and others' are pulled
  @Test("an account that was removed and came back is synced", arguments: [false, true])
  func removedAccount_thatComesBack_isSynced(whileRunning: Bool) async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      let words = try #require(world.words())
      let user = try a.localUserID
      let manager = try #require(try a.zdc.localUserManager)
      try await b.pull()
      try await b.create("/theirs", "2")
      try await b.sync()
      try await a.sync()
      let number = try await a.syncManager.engine(for: user).session.localUser
      try await a.syncManager.pausePush(forLocalUserID: user)
      @Sendable func leaveAndReturn() async throws {
        try await a.database.write { manager.deleteLocalUser(user, transaction: $0) }
        if !whileRunning { await #expect(throws: ZDCError.self) { try await a.sync() } }
        try await a.login(words: words)
        let state = try await a.syncManager.syncState(forLocalUserID: user)
        #expect(!state.isPaused)
        if !whileRunning { #expect(state == ZDCSyncState()) }
        #expect(try await a.syncManager.engine(for: user).session.localUser > number)
      }
      if whileRunning {
        try await a.whileRunning {
          try await leaveAndReturn()
          await a.recorder.wait(for: "new /theirs")
        }
      } else {
        try await leaveAndReturn()
      }
      // The pause of the removed user is gone, so this one ends with the first call to resume.
      try await a.syncManager.pausePush(forLocalUserID: user)
      try await a.syncManager.resumePush(forLocalUserID: user)
      #expect(try await !a.syncManager.isPushPaused(forLocalUserID: user))
      try await a.sync()
      try await a.create("/mine", "1")
      try await a.sync()
      #expect(try world.server.nodeCount() == 2)
      try await world.settle(a, b)
    }
  }

  @Test func accountsAreFoundInsideATransaction() async throws {
    try await TestWorld.run { world in
      let device = try await world.device("A")
      _ = try await world.device("B", account: "bob")
      let alice = try device.localUserID
      let bob = try await device.login(words: try #require(world.words(of: "bob")))
      let manager = try #require(try device.zdc.localUserManager)
      try await device.database.asyncRead { transaction in
        #expect(manager.anyLocalUser(transaction)?.uuid == alice)
        #expect(manager.allLocalUserIDs(transaction) == [alice, bob])
        #expect(manager.localUser(id: bob, transaction)?.uuid == bob)
        #expect(manager.localUser(id: "nobody", transaction) == nil)
        var seen: [String] = []
        manager.enumerateLocalUsers(transaction) { user, stop in
          seen.append(user.uuid)
          stop = true
        }
        #expect(seen == [alice])
      }
      try await device.pull(user: bob)
    }
  }
}
