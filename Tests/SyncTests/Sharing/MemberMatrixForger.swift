import Testing
import ZDCAccounts
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync

extension MemberMatrixTests {
  /// The commits of a change, and what they name.
  struct Forged {
    var commits: [ZoneCommit] = []
    var records: [NodeRecord] = []
    var list: ZoneACL?
    var grants: [Grant] = []
    /// The first page of a zone that the commit splits off, from an owner who has made it.
    var newZone: Lie?
    var endsZone = false

    var changesZones: Bool { endsZone || newZone != nil }

    /// Shows the commits after the log's head.
    func serve(from hostile: HostileServer) throws {
      let last = try #require(commits.last)
      var items = (list.map { [ServedItem($0)] } ?? []) + grants.map { ServedItem($0) }
      items += commits.map { ServedItem($0) } + records.map { ServedItem($0) }
      hostile.tell(.add(items, to: last.fields.zone))
      hostile.tell(.head(last.fields.zone, seq: last.fields.seq, hash: last.hash))
      if let newZone { hostile.tell(newZone) }
    }
  }

  /// Writes the changes of one user as an authorised member would.
  struct Forger {
    /// The branch as its owner opens it.
    let zone: RogueZone
    /// The keys of the user who writes.
    let keys: UserKeys
    /// The key of another member.
    let otherKey: SigningKey
    let reader: UserID
    let newMember: UserID
    let rotation: ZoneRotation
    /// The split of a user who can write the first commit of the new zone: the owner.
    let split: ForgedSplit?
    /// The keys of the branch's members, as a device knows them.
    let members: MemberKeys
    private var signingKey: SigningKey
    /// The commit that the changes follow; nil for the head.
    private var previous: ZoneCommit?

    init(
      zone: RogueZone, keys: UserKeys, otherKey: SigningKey, reader: UserID, newMember: UserID,
      rotation: ZoneRotation, split: ForgedSplit?, members: MemberKeys
    ) {
      (self.zone, self.keys, self.otherKey, self.reader) = (zone, keys, otherKey, reader)
      (self.newMember, self.rotation, self.split, self.members) = (newMember, rotation, split, members)
      signingKey = keys.signingKey
    }

    func signingWithOtherKey() -> Forger {
      var copy = self
      copy.signingKey = otherKey
      return copy
    }

    func following(_ commit: ZoneCommit?) -> Forger {
      var copy = self
      copy.previous = commit
      return copy
    }

    /// The error with which replay refuses the first commit of a change before it reads a node; nil if it does not.
    func earlyRefusal(of forged: Forged) throws -> String? {
      let (head, commit) = (try zone.head, try #require(forged.commits.first))
      let known = ZoneHead(zone: zone.zone, seq: head.fields.seq, hash: head.hash, acl: zone.acl)
      var state = UnreadState()
      do {
        _ = try ZoneReplay(identities: members).advance(commit, acl: forged.list, after: known, to: &state)
      } catch let error as ZDCSecurityError { return error.code.description } catch is UnreadState.Read {}
      return nil
    }

    func forge(_ change: Change) throws -> Forged {
      switch change {
      case .create: return try put(try draft(new: "new"))
      case .createBelow: return try put(try draft(new: "new", below: "folder"))
      case .createOwnChild: return try put(try ownChild())
      case .createWithContent: return try put(try draftWithContent())
      case .modify: return try put(try draft(next: "a"))
      case .move: return try put(try draft(next: "a", below: "folder"))
      case .modifyRoot: return try put(try nextRoot())
      case .delete: return try delete(try zone.node("a").record, 0)
      case .deleteBranch: return try delete(try zone.node("folder").record, 1)
      case .deleteOwn:
        let own = try put(try ownChild())
        let deletion = try delete(own.records[0], 0, after: own.commits[0])
        return Forged(commits: own.commits + deletion.commits, records: own.records)
      case .end:
        var end = try delete(zone.root.record, 0)
        end.endsZone = true
        return end
      case .split: return try splitOff()
      case .retireOwnKey: return Forged(commits: [try commit([.retireKey(user: keys.userID, gen: 2)])])
      case .retireOtherKey: return Forged(commits: [try commit([.retireKey(user: reader, gen: 2)])])
      case .rotate:
        return Forged(
          commits: [try commit(rotation.commit.fields.operations, list: rotation.acl)], records: [rotation.root],
          list: rotation.acl, grants: [rotation.grant])
      default: return try list(change)
      }
    }

    // MARK: Nodes

    private func commit(
      _ operations: [ZoneOperation], after previous: ZoneCommit? = nil, list: ZoneACL? = nil
    ) throws -> ZoneCommit {
      try zone.commit(operations, after: previous ?? self.previous, signedBy: signingKey) { fields in
        (fields.writer, fields.writerGen) = (keys.userID, keys.signGen)
        if let list { fields.aclHash = list.hash }
      }
    }

    private func put(_ draft: RecordDraft) throws -> Forged {
      let record = try RecordSealer.seal(draft)
      return Forged(commits: [try commit([.put(ZoneOperation.Put(record))])], records: [record])
    }

    private func written(_ draft: RecordDraft) -> RecordDraft {
      var draft = draft
      (draft.writer, draft.writerGen) = (keys.userID, keys.signGen)
      return draft
    }

    private func draft(new name: String, below parent: String = "") throws -> RecordDraft {
      written(try zone.draft(new: name, below: parent))
    }

    private func draft(next name: String, below parent: String = "") throws -> RecordDraft {
      written(try zone.draft(next: name, below: parent))
    }

    private func ownChild() throws -> RecordDraft {
      var draft = try draft(new: "own")
      draft.node = NodeID.child(of: zone.zone, for: keys.userID)
      return draft
    }

    private func draftWithContent() throws -> RecordDraft {
      var draft = try draft(new: "new")
      let other = try zone.draft(next: "a")
      (draft.content, draft.secrets.content) = (other.content, other.secrets.content)
      return draft
    }

    private func nextRoot() throws -> RecordDraft {
      var draft = try draft(next: "")
      (draft.parent, draft.parentLink, draft.isZoneRoot, draft.secrets.name) = (.zero, .none, true, [])
      return draft
    }

    private func delete(_ record: NodeRecord, _ descendants: UInt64, after previous: ZoneCommit? = nil) throws -> Forged
    {
      let operation = ZoneOperation.delete(
        node: record.fields.node, record: record.hash, liveDescendants: descendants)
      return Forged(commits: [try commit([operation], after: previous)])
    }

    private func splitOff() throws -> Forged {
      if let split {
        return Forged(
          commits: [try commit(split.commit.fields.operations)], records: [split.mount], newZone: split.firstPage)
      }
      let folder = try zone.node("folder").record.fields.node
      let (branch, genesis) = (ZoneID(tree: zone.zone.tree, root: folder), CommitHash(labelledHash: "forged"))
      var draft = try draft(new: "folder")
      draft.secrets.pointer = PointerTarget(
        owner: zone.keys.userID, zone: branch, node: folder, genesis: genesis, seq: 0, head: genesis)
      let mount = try RecordSealer.seal(draft)
      let operations: [ZoneOperation] = [
        .split(node: folder, genesis: genesis, count: 2), .put(ZoneOperation.Put(mount)),
      ]
      return Forged(commits: [try commit(operations)], records: [mount])
    }

    // MARK: Lists

    private func list(_ change: Change) throws -> Forged {
      let list = try zone.nextACL(signedBy: signingKey) { fields in
        (fields.writer, fields.writerGen) = (keys.userID, keys.signGen)
        edit(&fields, change)
      }
      let commit = try commit([.acl(version: list.fields.version, hash: list.hash)], list: list)
      return Forged(commits: [commit], list: list, grants: [zone.grant])
    }

    private func edit(_ fields: inout ZoneACL.Fields, _ change: Change) {
      switch change {
      case .addMember: add(newMember, to: &fields)
      case .raiseMember: set(reader, [.read, .write], in: &fields)
      case .raiseSelf where fields.entry(for: keys.userID) == nil: add(keys.userID, to: &fields)
      case .raiseSelf: set(keys.userID, [.read, .write, .share], in: &fields)
      case .removeMember: fields.entries.removeAll { $0.user == reader }
      case .leave: fields.entries.removeAll { $0.user == keys.userID }
      case .lowerOwner: set(fields.owner, [.read], in: &fields)
      default:
        let owner = fields.owner
        fields.entries.removeAll { $0.user == owner }
      }
    }

    private func set(_ user: UserID, _ permissions: ZoneACL.Permissions, in fields: inout ZoneACL.Fields) {
      for index in fields.entries.indices where fields.entries[index].user == user {
        fields.entries[index].permissions = permissions
      }
    }

    private func add(_ user: UserID, to fields: inout ZoneACL.Fields) {
      fields.entries.append(
        .init(user: user, permissions: [.read], encGen: 1, wrapKind: .nodeKey, wrapHash: zone.grant.wrapHash))
      fields.entries.sort { $0.user < $1.user }
    }
  }

  /// The signature keys of some users.
  struct MemberKeys: IdentityDirectory {
    let members: [UserKeys]

    func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
      members.first { $0.userID == user }?.identity.signKeys[generation]
    }
  }

  /// The nodes of a branch, which replay may neither read nor change.
  private struct UnreadState: ZoneState {
    struct Read: Error {}

    mutating func begin(_ commit: ZoneCommit.Fields) throws { throw Read() }
    func leaf(_ node: NodeID) throws -> LogNode? { throw Read() }
    func descendantCount(of node: NodeID, upTo limit: UInt64) throws -> UInt64 { throw Read() }
    func height(of node: NodeID, upTo limit: Int) throws -> Int { throw Read() }
    mutating func put(_ leaf: LogNode, replacing old: LogNode?) throws { throw Read() }
    mutating func removeSubtree(_ node: NodeID) throws { throw Read() }
    func writer(of leaf: LogNode) throws -> UserID? { throw Read() }
  }
}
