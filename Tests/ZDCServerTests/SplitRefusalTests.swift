import Testing
import ZDCProtocol
import ZDCServer

/// Splits that the server refuses, by each rule of PROTOCOL 3.7; nothing of a refused request is stored.
@Suite struct SplitRefusalTests {
  typealias Change = TestZone.SplitChange

  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let code: ZDCSecurityError.Code
    /// Returns the request.
    let body: @Sendable (SplitTests.World) throws -> [UInt8]

    init(_ code: ZDCSecurityError.Code, _ name: String, _ change: Change) {
      self.init(code, name) { try $0.home.split($0.top, change).body }
    }

    init(
      _ code: ZDCSecurityError.Code, _ name: String, _ body: @escaping @Sendable (SplitTests.World) throws -> [UInt8]
    ) {
      (testDescription, self.code, self.body) = (name, code, body)
    }
  }

  static let cases: [Case] = [
    // The genesis and the parent zone's commit belong together.
    Case(.splitMismatch, "no genesis") { try $0.home.split($0.top).parentPart },
    Case(.splitMismatch, "a genesis without its split") { try $0.home.split($0.top).genesisPart },
    Case(.splitMismatch, "the genesis of another split of the same node") {
      try $0.home.split($0.top).parentPart + $0.home.split($0.top).genesisPart
    },
    Case(.splitMismatch, "the genesis of another branch") {
      try $0.home.split($0.top).parentPart + $0.home.split($0.sibling).genesisPart
    },
    Case(.splitMismatch, "another state root", Change(state: { $0.stateRoot = .zero })),
    Case(.splitMismatch, "another count in the genesis", Change(state: { $0.count += 1 })),
    Case(.splitMismatch, "another parent head", Change(state: { $0.parentHead = CommitHash(randomBytes(32))! })),
    Case(.splitMismatch, "a birth instead of a genesis with a state") { world in
      let home = world.home.acl.fields
      let birth = try TestZone(
        owner: home.owner, signKey: world.home.signKey, trunk: home.trunk, app: home.appTreeID, root: world.top)
      let split = try world.home.split(world.top, Change(operations: { $0[0] = $0[0].naming(birth.headHash) }))
      return split.parentPart + birth.birth
    },
    // The parent zone's commit.
    Case(.splitMismatch, "another count in the split", Change(operations: { $0[0] = $0[0].counting(5) })),
    Case(.splitMismatch, "a smaller count in the split", Change(operations: { $0[0] = $0[0].counting(3) })),
    Case(.limitExceeded, "too large a count", Change(operations: { $0[0] = $0[0].counting(1_000_001) })),
    Case(.splitMismatch, "the mount elsewhere") { world in
      let sibling = world.sibling
      return try world.home.split(world.top, Change(mount: { $0.parent = sibling })).body
    },
    Case(.splitMismatch, "no mount") { world in
      let split = try world.home.split(world.top, Change(operations: { $0.removeLast() }))
      return TestZone.body(split.commit) + split.genesisPart
    },
    Case(.splitMismatch, "the trunk's root") { world in
      let root = world.home.zone.root
      let change = Change(operations: { $0[0] = .split(node: root, genesis: .zero, count: 6) })
      return try world.home.split(world.top, change).body
    },
    Case(
      .objectMissing, "a node that is not live",
      Change(operations: { $0[0] = .split(node: .random(), genesis: .zero, count: 1) })),
    Case(.nonCanonicalEncoding, "a node of the branch that is named again") { world in
      let file = world.home.record(world.file)
      let split = try world.home.split(world.top, Change(operations: { $0.append(.put(.init(file))) }))
      return TestZone.body(split.commit, records: [split.mount, file]) + split.genesisPart
    },
    Case(.objectMissing, "a new node below the branch") { world in
      let file = world.home.record(.random(), parent: world.folder)
      let split = try world.home.split(world.top, Change(operations: { $0.append(.put(.init(file))) }))
      return TestZone.body(split.commit, records: [split.mount, file]) + split.genesisPart
    },
    Case(.nonCanonicalEncoding, "two splits") { world in
      let second = try world.home.split(world.sibling)
      let split = try world.home.split(
        world.top, Change(operations: { $0.insert(second.commit.fields.operations[0], at: 1) }))
      return split.body + second.genesisPart
    },
    Case(.nonCanonicalEncoding, "a put in front of the split") { world in
      try world.home.split(world.top, Change(operations: { $0.swapAt(0, 1) })).body
    },
    Case(.duplicateName, "a mount with the name of a sibling") { world in
      let tag = world.home.records[world.sibling]?.fields.nameTag ?? .zero
      return try world.home.split(world.top, Change(mount: { $0.nameTag = tag })).body
    },
    // The new zone's root and list.
    Case(
      .staleKeyGeneration, "the old key",
      Change(root: { $0.keyGen = 1 }, list: { ($0.zoneKeyGen, $0.historyWrap) = (1, []) })),
    Case(.staleKeyGeneration, "a later key", Change(root: { $0.keyGen = 3 }, list: { $0.zoneKeyGen = 3 })),
    Case(.keyCommitmentMismatch, "a list of another generation", Change(list: { $0.zoneKeyGen = 3 })),
    Case(.splitMismatch, "a root that skips a version", Change(root: { $0.recordVersion += 1 })),
    Case(.recordRollback, "a root that begins again", Change(root: { ($0.recordVersion, $0.prevRecord) = (1, .zero) })),
    Case(.recordRollback, "a root without its content", Change(root: { $0.content = nil })),
    Case(
      .splitMismatch, "a root with newer content",
      Change(root: {
        $0.content?.dataVersion += 1
        $0.content?.blobID = .random()
      })),
    Case(.recordBindingMismatch, "a root with a name", Change(root: { $0.nameTag = .random() })),
    Case(.recordBindingMismatch, "a root with a place", Change(root: { $0.parentWrap = randomBytes(104) })),
    Case(.treeCycle, "a root below its old parent") { world in
      let parent = world.home.zone.root
      return try world.home.split(
        world.top,
        Change(root: {
          $0.parent = parent
          $0.parentKeyGen = 1
        })
      ).body
    },
    Case(
      .aclRollback, "a second list",
      Change(list: { $0.version = 2 }, genesis: { $0.operations[1] = .acl(version: 2, hash: $0.aclHash) })),
    Case(.aclOwnerImmutable, "a list without the owner") { world in
      let (owner, other) = (world.account.userID, UserID(1, 2, 3, 4))
      let change = Change(list: { fields in
        fields.entries.removeAll { $0.user == owner }
      })
      return try world.home.split(world.top, members: [(other, [.read])], change).body
    },
    Case(.grantHashMismatch, "the grants of another list") { world in
      var split = try world.home.split(world.top)
      split.grants = try world.home.split(world.top).grants
      return split.body
    },
    Case(.grantMissing, "no grant") { world in
      var split = try world.home.split(world.top)
      split.grants = []
      return split.body
    },
    Case(.recipientKeyStale, "a member without an account") {
      try $0.home.split($0.top, members: [(UserID(1, 2, 3, 4), [.read])]).body
    },
    // The form of the genesis.
    Case(.commitChainBroken, "a genesis that follows nothing", Change(genesis: { $0.prev = .zero })),
    Case(
      .commitChainBroken, "a genesis that deletes",
      Change(genesis: { fields in
        fields.operations.append(.delete(node: .random(), record: .zero, liveDescendants: 0))
      })),
    Case(
      .nonCanonicalEncoding, "a state that is not the first operation", Change(genesis: { $0.operations.swapAt(0, 1) })),
  ]

  @Test(arguments: cases) func theSplitIsRefused(_ refusal: Case) async throws {
    try await SplitTests.run { server, world in
      let answer = try await server.commit(try refusal.body(world), token: world.token)
      #expect((answer.status, answer.error?.security) == (422, refusal.code))
      // Nothing of it is stored: the correct split is taken.
      _ = try await server.split(world.top, of: &world.home, token: world.token)
    }
  }

  /// - A split is signed, another commit comes first, the split is signed again and taken
  /// => 409 with the page of home; the dead genesis is refused in each form
  @Test("S-4: the genesis of a split that came too late is refused") func theDeadGenesisIsRefused() async throws {
    try await SplitTests.run { server, world in
      let late = try world.home.split(world.top)
      try await server.put([world.home.record(world.file)], in: &world.home, token: world.token)
      let stale = try await server.commit(late.body, token: world.token)
      #expect(stale.status == 409 && stale.headers[WireHeaders.zone]?.hasSuffix(world.home.zone.root.text) == true)
      #expect(try stale.outline() == "commit 2, record v2")
      let child = try await server.split(world.top, of: &world.home, token: world.token)
      #expect(try await server.commit(late.genesisPart, token: world.token).error?.code == .zoneExists)
      #expect(try await server.commit(late.body, token: world.token).status == 409)
      #expect(try await server.page(child.zone, token: world.token).lastCommit()?.commitHash == child.headHash)
    }
  }

  /// - A member with all rights splits
  /// => refused, as in replay
  @Test func onlyTheOwnerSplits() async throws {
    try await SplitTests.run { server, world in
      let (friend, friendToken) = try await server.newAccount()
      world.home.acl = try await server.share(
        &world.home, with: world.home.member(friend.userID, [.read, .write, .share]), token: world.token)
      let split = try world.home.split(world.top, TestZone.SplitChange(mount: { $0.writer = friend.userID }))
      let commit = try world.home.commit(by: friend, split.commit.fields.operations, list: world.home.acl)
      let body = TestZone.body(commit, records: [split.mount])
      let refused = try await server.commit(body, token: friendToken)
      #expect((refused.status, refused.error?.security) == (422, .splitNeedsOwner))
      let both = try await server.commit(body + split.genesisPart, token: friendToken)
      #expect((both.status, both.error?.security) == (422, .splitNeedsOwner))
    }
  }

  /// - Only one of the two commits of an accepted request is sent again, and one beside a new one
  @Test func halfOfASplitIsNotRepeated() async throws {
    try await SplitTests.run { server, world in
      let split = try world.home.split(world.top)
      _ = try await server.commit(split.body, token: world.token).expect(200)
      for part in [split.parentPart, split.genesisPart] {
        _ = try await server.commit(part, token: world.token).expect(200)
      }
      let other = try world.home.split(world.sibling)
      let mixed = try await server.commit(split.parentPart + other.genesisPart, token: world.token)
      #expect((mixed.status, mixed.error?.code) == (409, .conflict))
    }
  }
}

extension ZoneOperation {
  fileprivate func counting(_ count: UInt64) -> ZoneOperation {
    guard case .split(let node, let genesis, _) = self else { return self }
    return .split(node: node, genesis: genesis, count: count)
  }

  fileprivate func naming(_ genesis: CommitHash) -> ZoneOperation {
    guard case .split(let node, _, let count) = self else { return self }
    return .split(node: node, genesis: genesis, count: count)
  }
}

extension Bundle.Item {
  var commitHash: CommitHash? { if case .commit(_, let commit) = self { commit.hash } else { nil } }
}
