import Testing
import ZeroDarkCloudTesting

/// The place of a branch to which several pointers lead: the order in which a device reads them does not decide.
struct PointerPlaceTests {
  typealias People = ListChangeTests.People

  /// - Alice shares a folder inside of two shared folders with Bob, who grafts it into his own folder, which he shares with
  ///   her
  /// => all of her devices show it at her own place, and Bob's pointer as a leaf
  @Test func anOwnBranchIsNotShownInAnothersTree() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      try await bob.meet(alice)
      for path in ["/a", "/a/x", "/a/x/y"] { try await alice.create(path, path) }
      try await alice.sync()
      // Other permissions than above make it a branch.
      for (path, letters) in [("/a", "rw"), ("/a/x/y", "rws")] {
        try await alice.share(path, with: bob, letters)
        try await alice.sync()
      }
      try await bob.create("/folder")
      try await bob.share("/folder", with: alice)
      try await bob.graft("/folder/graft", try await alice.invite("/a/x/y"), from: alice)
      try await bob.sync()
      try await alice.graft("/bobs", try await bob.invite("/folder"), from: bob)
      try await world.settle(alice, bob)
      // New devices read this branch, with her own pointer, after Bob's folder.
      try await alice.share("/a/x", with: bob, "r")
      try await world.settle(alice, bob)
      #expect(try await alice.branch("/a") == "/x  \"/a/x\"\n/x/y  \"/a/x/y\"")
      #expect(try await alice.branch("/bobs") == "/graft")
      for number in 0..<3 {
        let fresh = try await world.device("fresh \(number)")
        try await world.settle(fresh)
        #expect(try await fresh.tree() == alice.tree())
      }
    }
  }
}
