import NIOCore
import Testing
import ZDCProtocol

@testable import ZDCServer

/// The recipients of each event, without a server.
@Suite struct EventHubTests {
  private let hub = EventHub(streamsPerUser: 4, pendingBytes: 1 << 20)
  private let owner: TestAccount
  private let zone: TestZone

  init() throws {
    owner = try TestAccount()
    zone = owner.home
  }

  private func subscribe(_ user: UserID) throws -> EventHub.Subscription {
    try hub.subscribe(SessionRow(tokenHash: [], user: user, device: .random(), createdMs: 0, expiresMs: .max))
  }

  /// A commit that puts a node, in a zone with these members besides the owner.
  private func head(_ seq: UInt64, members: [UserID], removing gone: Set<UserID> = []) throws -> HeadNotice {
    let list = try zone.list(adding: members.map { zone.member($0).entry })
    let record = zone.record(.random())
    let commit = try zone.commit([.put(.init(record))]) { $0.aclHash = list.hash }
    let head = ZoneHead(zone: zone.zone, seq: seq, hash: commit.hash, acl: list)
    var delta = ZoneDelta(target: .existing(ZoneKey(1)), head: head, commit: commit, receivedMs: 1)
    if !gone.isEmpty { delta.change(to: ZoneDelta.ListChange(acl: list, grants: [], removed: gone)) }
    let part = CommitRequest.ZonePart(commit: commit, acl: gone.isEmpty ? nil : list)
    return HeadNotice(status: ZoneStatus(zone: zone.zone, seq: seq, head: commit.hash), part: part, delta: delta)
  }

  private func follow(_ user: UserID, _ isFollowing: Bool = true) -> MembershipNotice {
    let status = ZoneStatus(zone: zone.zone, seq: 99, head: .zero)
    return MembershipNotice(user: user, zone: zone.zone, status: isFollowing ? status : nil)
  }

  /// Returns the numbers of the commits in the zone that a stream got. Another zone that the user accepts ends them.
  private func numbers(_ subscription: EventHub.Subscription) async throws -> [UInt64] {
    let other = ZoneID(tree: .random(), root: .random())
    let status = ZoneStatus(zone: other, seq: 0, head: .zero)
    hub.publish(MembershipNotice(user: subscription.user, zone: other, status: status))
    var numbers: [UInt64] = []
    while let frame = await subscription.mailbox.next(), let head = frame.head, head.zone == zone.zone {
      numbers.append(head.seq)
    }
    return numbers
  }

  /// - 100 members follow a zone; one commit
  /// => every stream gets the same buffer: the event was encoded once, and is stored once
  @Test("P-1: all members' streams share one buffer") func oneBufferForAllStreams() async throws {
    let members = (0..<100).map { _ in UserID(randomBytes(32))! }
    let streams = try ([owner.userID] + members).map(subscribe)
    for stream in streams { hub.activate(stream, following: stream.user == owner.userID ? [] : [zone.zone]) }
    hub.publish(try head(1, members: members))
    var addresses: Set<UnsafeRawPointer?> = []
    for stream in streams {
      let frame = try #require(await stream.mailbox.next())
      addresses.insert(frame.bytes.withUnsafeReadableBytes { $0.baseAddress })
    }
    #expect(streams.count == 101 && addresses.count == 1)
  }

  /// - One of three members does not read; the zone has more events than fit into a mailbox
  /// => its stream ends, and the others get every event
  @Test("P-1: a member who does not read delays no other") func slowMembersEndAlone() async throws {
    let members = (0..<3).map { _ in UserID(randomBytes(32))! }
    let small = EventHub(streamsPerUser: 4, pendingBytes: 2_000)
    let streams = try members.map { user in
      try small.subscribe(SessionRow(tokenHash: [], user: user, device: .random(), createdMs: 0, expiresMs: .max))
    }
    for stream in streams { small.activate(stream, following: [zone.zone]) }
    for seq in UInt64(1)...20 {
      small.publish(try head(seq, members: members))
      for stream in streams.dropFirst() { #expect(await stream.mailbox.next()?.head?.seq == seq) }
    }
    #expect(await streams[0].mailbox.next() == nil)
  }

  /// => an event has the page of its commit up to 64 KiB, and no page that is a byte longer
  @Test(arguments: [-1, 0, 1]) func anEventHasAPageUpToItsLimit(more: Int) throws {
    let length = Limits.eventPageBytes + more
    let record = zone.record(.random())
    let commit = try zone.commit([.put(.init(record))])
    // In a page, 13 bytes stand before a commit, and 21 before a record.
    let stored = StoredRecord(
      bytes: randomBytes(length - commit.bytes.count - 34), recordReceivedMs: 1, dataReceivedMs: 0)
    let leaf = LogNode(
      node: record.fields.node, parent: zone.zone.root, record: record.hash, putSeq: 1, keyGen: 1, parentKeyGen: 1)
    let head = ZoneHead(zone: zone.zone, seq: 1, hash: commit.hash, acl: zone.acl)
    var delta = ZoneDelta(target: .existing(ZoneKey(1)), head: head, commit: commit, receivedMs: 1)
    delta.puts = [NodePut(leaf: leaf, tag: nil, record: stored, content: .none, replaced: nil)]
    let notice = HeadNotice(
      status: ZoneStatus(zone: zone.zone, seq: 1, head: commit.hash), part: CommitRequest.ZonePart(commit: commit),
      delta: delta)
    #expect(notice.page?.count == (more > 0 ? nil : length))
  }

  @Test func aRemovedMemberGetsTheRemovingCommit_andNoLaterOne() async throws {
    let (stays, goes) = (UserID(randomBytes(32))!, UserID(randomBytes(32))!)
    let streams = try [stays, goes].map(subscribe)
    for stream in streams { hub.activate(stream, following: [zone.zone]) }
    hub.publish(try head(1, members: [stays, goes]))
    hub.publish(try head(2, members: [stays], removing: [goes]))
    hub.publish(try head(3, members: [stays]))
    #expect(try await numbers(streams[0]) == [1, 2, 3])
    #expect(try await numbers(streams[1]) == [1, 2])
  }

  /// - Commits come while a stream reads its user's zones: some before, some after what it reads
  /// => the stream gets all of them once it is active, in order, and those of zones that the user does not follow never
  @Test func noCommitIsMissedWhileZonesAreRead() async throws {
    let (follower, listed) = (UserID(randomBytes(32))!, UserID(randomBytes(32))!)
    let streams = try [follower, listed].map(subscribe)
    hub.publish(try head(1, members: [follower, listed]))
    hub.publish(try head(2, members: [follower, listed]))
    hub.activate(streams[0], following: [zone.zone])
    hub.activate(streams[1], following: [])
    hub.publish(try head(3, members: [follower, listed]))
    #expect(try await numbers(streams[0]) == [1, 2, 3])
    #expect(try await numbers(streams[1]) == [])
  }

  /// - A member is removed, or accepts, while their zones are being read
  /// => the later announcement decides, whatever the read saw
  @Test func changesOfMembershipsWhileZonesAreRead_decide() async throws {
    let (removed, accepts, leaves) = (UserID(randomBytes(32))!, UserID(randomBytes(32))!, UserID(randomBytes(32))!)
    let streams = try [removed, accepts, leaves].map(subscribe)
    hub.publish(try head(1, members: [accepts, leaves], removing: [removed]))
    hub.publish(follow(accepts))
    hub.publish(follow(leaves, false))
    for stream in streams { hub.activate(stream, following: stream.user == accepts ? [] : [zone.zone]) }
    hub.publish(try head(2, members: [accepts, leaves]))
    #expect(try await numbers(streams[0]) == [1])
    #expect(try await numbers(streams[1]) == [99, 2])
    #expect(try await numbers(streams[2]) == [1])
  }

  /// - More commits than are kept come while a user's zones are being read
  /// => the user's streams end; others are not affected
  @Test func keptNoticesAreBounded() async throws {
    let (reading, other) = (UserID(randomBytes(32))!, UserID(randomBytes(32))!)
    let streams = try [reading, other].map(subscribe)
    hub.activate(streams[1], following: [])
    let notice = try head(1, members: [reading, other])
    for _ in 0...4_096 { hub.publish(notice) }
    #expect(await streams[0].mailbox.next() == nil)
    #expect(try await numbers(streams[1]) == [])
  }

  @Test func anEndedUserLeavesNothing() async throws {
    let member = UserID(randomBytes(32))!
    let first = try subscribe(member)
    hub.activate(first, following: [zone.zone])
    hub.unsubscribe(first)
    hub.publish(try head(1, members: [member]))
    let second = try subscribe(member)
    hub.activate(second, following: [])
    hub.publish(try head(2, members: [member]))
    #expect(try await numbers(second) == [])
    #expect(hub.openStreams == 1)
  }

  /// - A stream begins with a list, and gets a commit that the list has, and then nothing for a minute
  /// => the commit is not sent twice, and the list is no longer in memory
  @Test func aStreamForgetsItsList() {
    let listed = ListedHeads([ZoneStatus(zone: zone.zone, seq: 5, head: .zero)])
    #expect(listed.has(ZoneStatus(zone: zone.zone, seq: 5, head: .zero)))
    #expect(!listed.has(ZoneStatus(zone: zone.zone, seq: 6, head: .zero)))
    #expect(!listed.has(nil) && listed.count == 1)
    #expect(!listed.has(nil, at: .now + .seconds(61)) && listed.count == 0)
  }
}
