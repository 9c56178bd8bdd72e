import Foundation
import Testing
import ZDCProtocol
import ZDCServer

/// Branches that become zones (PROTOCOL 3.7, "Splits").
@Suite struct SplitTests {
  /// A tree with a branch: `top` with a file in it, a folder with a file in that, and a sibling of `top`.
  struct World {
    let account: TestAccount
    let token: [UInt8]
    var home: TestZone
    let top = NodeID.random()
    let folder = NodeID.random()
    let file = NodeID.random()
    let deep = NodeID.random()
    let sibling = NodeID.random()
    let topContent = TestZone.Content()
    let small = TestZone.Content()
    let large = BlobTests.Large(70_000)

    init(_ server: TestServer) async throws {
      (account, token) = try await server.newAccount()
      home = account.home
      try await server.upload(large, deep, home, token: token)
      try await server.put(
        [
          home.record(top, content: topContent.field()), home.record(sibling),
          home.record(file, parent: top, content: small.field()), home.record(folder, parent: top),
          home.record(deep, parent: folder, content: large.field),
        ], contents: [topContent, small], in: &home, token: token)
    }
  }

  static func run(
    in folder: String? = nil, _ body: (TestServer, inout World) async throws -> Void
  ) async throws {
    let path = folder ?? TestServer.newFolder()
    defer { if folder == nil { TestServer.remove(path) } }
    try await TestServer.run(in: path) { (server: TestServer) async throws in
      var world = try await World(server)
      try await body(server, &world)
    }
    #expect(try TestStores.findings(in: path) == [])
  }

  /// - The owner splits a branch off for a friend; the request is repeated
  /// => one new zone, offered to the friend, who sees the whole branch and nothing of home
  @Test func aBranchBecomesAZone() async throws {
    try await Self.run { server, world in
      let (friend, friendToken) = try await server.newAccount()
      let split = try world.home.split(world.top, members: [(friend.userID, [.read, .write])])
      let first: CommitResponse = try await server.commit(split.body, token: world.token).json()
      let again: CommitResponse = try await server.commit(split.body, token: world.token).json()
      #expect(first == again)
      #expect(Set(first.zones.map(\.head)) == [split.commit.hash, split.genesis.hash])
      let zone = split.child.zone
      #expect(try await server.zones("?offered=1", token: friendToken).zones.map(\.zone) == [zone])
      #expect(try await server.zones(token: world.token).zones.map(\.zone).contains(zone))
      let page = try await server.page(zone, token: friendToken)
      #expect(try page.outline() == "acl, grant, commit 0, record v2")
      let state = try await server.state(zone, token: friendToken).expect(200)
      #expect(state.bytes == split.list.bytes && state.headers["content-length"] == "\(4 * 72)")
      for token in [friendToken, world.token] {
        let old = split.list.nodes.compactMap { world.home.records[$0.node] }.filter { $0.fields.node != world.top }
        let records = try await server.records(old + [split.root], of: zone, token: token)
        #expect(try records.items().count == 4)
        let node = Routes.path(Routes.node, zone.tree.text, world.deep.text)
        #expect(try await server.send(.GET, node, token: token).json(ZoneStatus.self).zone == zone)
      }
      #expect(
        try await server.content(world.large.blob, of: world.deep, in: split.child, token: friendToken).status == 200)
      #expect(try await server.page(world.home.zone, token: friendToken).status == 404)
      #expect(try await server.state(world.home.zone, token: world.token).status == 404)
    }
  }

  /// - A member of home is not in the new zone
  /// => they read home up to the split and the mount, and neither records nor content of the branch
  @Test func membersOfTheParentZoneDoNotReadTheNewOne() async throws {
    try await Self.run { server, world in
      let (friend, friendToken) = try await server.newAccount()
      world.home.acl = try await server.share(
        &world.home, with: world.home.member(friend.userID), token: world.token)
      let before = world.home.records
      server.clock.advance(ms: 1)
      let child = try await server.split(world.top, of: &world.home, token: world.token)
      let page = try await server.page(world.home.zone, token: friendToken).expect(200)
      // The root and the sibling of the branch, and the mount.
      #expect(try page.outline().components(separatedBy: "record").count == 4)
      let deep = try #require(before[world.deep])
      let gone = try await server.records([deep], of: world.home.zone, token: friendToken)
      #expect(gone.error?.code == .gone)
      #expect(try await server.records([deep], of: child.zone, token: friendToken).status == 404)
      #expect(try await server.state(child.zone, token: friendToken).status == 404)
      for (node, blob) in [(world.deep, world.large.blob), (world.file, world.small.blob)] {
        #expect(try await server.content(blob, of: node, in: child, token: friendToken).status == 404)
      }
      // The record that the split replaced was replaced in home.
      let old = try #require(before[world.top])
      #expect(try await server.records([old], of: world.home.zone, token: friendToken).items().count == 1)
      #expect(try await server.records([old], of: child.zone, token: world.token).error?.code == .gone)
    }
  }

  /// - In the new zone a node is edited, one moved, one deleted, one created; the same in home
  /// => each zone accepts its own nodes and refuses those of the other; all that is replaced belongs to its zone
  @Test func bothZonesGoOn() async throws {
    try await Self.run { server, world in
      var child = try await server.split(world.top, of: &world.home, token: world.token)
      let old = try #require(child.records[world.file])
      let fresh = { (fields: inout NodeRecord.Fields) in (fields.keyGen, fields.parentKeyGen) = (2, 2) }
      let content = TestZone.Content()
      try await server.put(
        [
          child.record(world.file, content: content.field(version: 2), change: fresh),
          child.record(world.folder, change: fresh), child.record(.random(), change: fresh),
        ], contents: [content], in: &child, token: world.token)
      #expect(try await server.records([old], of: child.zone, token: world.token).items().count == 1)
      let replaced = try await server.content(world.small.blob, of: world.file, in: child, token: world.token)
      #expect(replaced.bytes == world.small.bytes)
      try await server.put(
        [child.record(world.deep, parent: world.top, change: fresh)], in: &child, token: world.token)
      try await server.delete(world.folder, in: &child, token: world.token)
      try await server.put([world.home.record(world.sibling)], in: &world.home, token: world.token)
      let foreign = try world.home.put([world.home.record(world.file)])
      #expect(try await server.commit(foreign.body, token: world.token).error?.security == .recordBindingMismatch)
      let back = try child.put([child.record(world.sibling, change: fresh)])
      #expect(try await server.commit(back.body, token: world.token).error?.security == .recordBindingMismatch)
      let below = try world.home.put([world.home.record(.random(), parent: world.folder)])
      #expect(try await server.commit(below.body, token: world.token).error?.security == .objectMissing)
    }
  }

  /// - A branch of the new zone is split off again, and the mount of the first one is deleted
  /// => three zones; the delete of a mount takes nothing with it
  @Test func aBranchOfTheNewZoneIsSplitOffAgain_andAMountIsDeleted() async throws {
    try await Self.run { server, world in
      let split = try world.home.split(world.top)
      _ = try await server.commit(split.body, token: world.token).expect(200)
      world.home.accepted(split)
      var child = split.child
      let inner = try child.split(world.folder, SplitChange.stale)
      _ = try await server.commit(inner.body, token: world.token).expect(200)
      child.accepted(inner)
      #expect(inner.list.count == 2)
      #expect(try await server.state(inner.child.zone, token: world.token).bytes == inner.list.bytes)
      try await server.delete(split.mount.fields.node, in: &world.home, token: world.token)
      for node in [world.deep, world.folder] {
        let path = Routes.path(Routes.node, child.zone.tree.text, node.text)
        #expect(try await server.send(.GET, path, token: world.token).json(ZoneStatus.self).zone == inner.child.zone)
      }
      let content = try await server.content(world.large.blob, of: world.deep, in: child, token: world.token)
      #expect(content.bytes == world.large.bytes)
    }
  }

  private typealias SplitChange = TestZone.SplitChange
}

extension TestZone.SplitChange {
  /// A split in a zone whose key is 2: nodes below the root have that generation.
  static let stale = TestZone.SplitChange(mount: { ($0.keyGen, $0.parentKeyGen) = (2, 2) })
}
