import Testing
import ZDCClientStore
import ZDCCrypto
import ZDCProtocol

@testable import ZDCSync

/// The access list that results from queued changes (PROTOCOL 3.9, 3.10).
struct WantedListTests {
  private static func user(_ number: UInt8) -> UserID {
    UserID([UInt8](repeating: number, count: 32)) ?? .zero
  }

  private static let (owner, sharer, writer, stranger) = (user(1), user(2), user(3), user(4))

  private static var list: ZoneACL.Fields {
    let members: [(UserID, ZoneACL.Permissions)] = [
      (owner, [.read, .write, .share]), (sharer, [.read, .write, .share]), (writer, [.read, .write]),
    ]
    let tree = TreeID.derive(owner: owner, trunk: .home, appTreeID: "com.example.list")
    return ZoneACL.Fields(
      zone: ZoneID(trunkOf: tree), owner: owner, trunk: .home, appTreeID: "com.example.list", version: 3,
      prev: .zero, parentLinked: false, zoneKeyGen: 2, commitments: NodeKey.random().commitments,
      entries: members.map { user, permissions in
        ZoneACL.Entry(user: user, permissions: permissions, encGen: 1, wrapKind: .nodeKey, wrapHash: .zero)
      }, writer: owner, writerGen: 1, timeMs: 1)
  }

  private static func wanted(_ changes: [ListChange], by writer: UserID = owner) -> WantedList {
    WantedList(
      after: list, changes.enumerated().map { WantedList.Change(operation: Int64($0 + 1), change: $1) }, by: writer)
  }

  @Test func aNewMemberGetsAGrant_andOthersKeepTheirs() {
    let wanted = Self.wanted([.set(Self.stranger, [.read])])
    #expect(wanted.effective == [1] && !wanted.isRotation)
    #expect(wanted.recipients(after: Self.list) == [Self.stranger])
    #expect(wanted.permissions[Self.stranger] == [.read] && wanted.permissions.count == 4)
  }

  @Test func otherPermissionsNeedNoGrant() {
    let wanted = Self.wanted([.set(Self.writer, [.read])])
    #expect(wanted.effective == [1] && wanted.recipients(after: Self.list).isEmpty && !wanted.isRotation)
  }

  @Test func aRemovalGivesAFreshKeyToAllWhoStay() {
    let wanted = Self.wanted([.remove(Self.writer), .set(Self.stranger, [.read])])
    #expect(wanted.effective == [1, 2] && wanted.isRotation)
    #expect(wanted.recipients(after: Self.list) == [Self.owner, Self.sharer, Self.stranger])
  }

  /// Replay decides by the same function, so a list that the client makes is one that all members accept.
  @Test func aSharerMayNarrowWhatTheyGive() {
    let narrowed: ZoneACL.Permissions = [.read, .write, .writeOnce]
    #expect(Self.wanted([.set(Self.stranger, narrowed)], by: Self.sharer).effective == [1])
    #expect(Self.wanted([.set(Self.stranger, narrowed)], by: Self.writer).refused == [1])
  }

  /// Another device has removed the user in the meantime.
  @Test func otherPermissions_addNoRemovedUser() {
    #expect(Self.wanted([.modify(Self.stranger, [.read])]).done == [1])
    #expect(Self.wanted([.modify(Self.writer, [.read, .write])]).done == [1])
    let wanted = Self.wanted([.modify(Self.writer, [.read])])
    #expect(wanted.effective == [1] && wanted.permissions[Self.writer] == [.read] && !wanted.isRotation)
    #expect(Self.wanted([.modify(Self.writer, [.read])], by: Self.writer).refused == [1])
  }

  /// A change whose request failed is queued in front of one that the app has made since.
  @Test func theLastChangeOfAMemberCounts() {
    let removed = Self.wanted([.set(Self.stranger, [.read]), .remove(Self.stranger)])
    #expect(removed.done == [1, 2] && removed.isEmpty && removed.permissions[Self.stranger] == nil)
    let narrowed = Self.wanted([.remove(Self.writer), .rotate(after: 1), .set(Self.writer, [.read])])
    #expect(narrowed.effective == [1, 3] && narrowed.done == [2] && !narrowed.isRotation)
    #expect(narrowed.permissions[Self.writer] == [.read])
    let gone = Self.wanted([.set(Self.writer, [.read]), .remove(Self.writer)])
    #expect(gone.effective == [1, 2] && gone.isRotation && gone.permissions[Self.writer] == nil)
    let refused = Self.wanted([.set(Self.stranger, [.read]), .set(Self.stranger, [.read, .write])], by: Self.writer)
    #expect(refused.refused == [1, 2] && refused.isEmpty)
  }

  @Test func whatIsInForceIsDone() {
    let wanted = Self.wanted([.set(Self.writer, [.read, .write]), .remove(Self.stranger), .rotate(after: 1)])
    #expect(wanted.done == [1, 2, 3] && wanted.isEmpty && !wanted.isRotation)
    #expect(Self.wanted([.rotate(after: 2)]).isRotation)
  }

  @Test(
    "the list decides who may change it",
    arguments: [
      (Self.writer, ListChange.set(Self.stranger, [.read])), (Self.writer, .remove(Self.sharer)),
      (Self.writer, .rotate(after: 2)), (Self.stranger, .set(Self.stranger, [.read])),
      (Self.sharer, .remove(Self.owner)), (Self.owner, .set(Self.owner, [.read])),
    ])
  func refusals(writer: UserID, change: ListChange) {
    let wanted = Self.wanted([change], by: writer)
    #expect(wanted.refused == [1] && wanted.isEmpty)
  }

  @Test func aSharerGivesNoMoreThanTheyHave() {
    var list = Self.list
    list.entries[1].permissions = [.read, .write]
    let change = ListChange.set(Self.stranger, [.read, .write, .share])
    #expect(!list.allows(change, by: Self.sharer))
    #expect(Self.list.allows(change, by: Self.sharer))
    #expect(Self.list.allows(.remove(Self.writer), by: Self.sharer))
  }

  /// R4: a member who leaves does not choose the key, and changes nothing else in the same version.
  @Test func aMemberLeavesInAVersionOfItsOwn() {
    let alone = Self.wanted([.remove(Self.writer)], by: Self.writer)
    #expect(alone.isSelfRemoval && !alone.isRotation && alone.effective == [1])
    let later = Self.wanted([.remove(Self.sharer), .set(Self.stranger, [.read])], by: Self.sharer)
    #expect(!later.isSelfRemoval && later.effective == [2] && later.permissions[Self.sharer] != nil)
  }

  @Test func aListHasAtMostItsLimitOfMembers() throws {
    let many = try (0..<Limits.aclEntries).map { number in
      ListChange.set(
        try #require(UserID([UInt8](repeating: 9, count: 30) + [UInt8(number >> 8), UInt8(number & 255)])), [.read])
    }
    let wanted = Self.wanted(many)
    #expect(wanted.permissions.count == Limits.aclEntries && wanted.excess.count == 3 && wanted.refused.isEmpty)
  }
}
