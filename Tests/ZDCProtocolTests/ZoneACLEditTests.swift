import Testing
import ZDCProtocol

/// K-6: an access list as the difference to the one before it.
@Suite struct ZoneACLEditTests {
  private func entry(_ user: UInt64, _ wrap: UInt64 = 1) -> ZoneACL.Entry {
    ZoneACL.Entry(
      user: UserID(0, 0, 0, user), permissions: [.read], encGen: 1, wrapKind: .nodeKey,
      wrapHash: GrantHash(0, 0, 0, wrap))
  }

  private func list(after old: ZoneACL? = nil, _ entries: [ZoneACL.Entry]) -> ZoneACL {
    var generator = SeededGenerator(seed: 4)
    var fields = Samples.acl(&generator)
    if let old { (fields.version, fields.prev) = (old.fields.version + 1, old.hash) }
    fields.entries = entries
    return ZoneACL(fields, sign: { _ in [UInt8](repeating: 9, count: 64) })
  }

  @Test func anEditGivesTheListBack() throws {
    let old = list([entry(1), entry(2), entry(3)])
    let rows = [
      [entry(1), entry(2), entry(3)], [entry(1), entry(3)], [entry(1), entry(2, 7), entry(3), entry(4)], [entry(9)], [],
    ]
    for entries in rows {
      let new = list(after: old, entries)
      let edit = try ZoneACLEdit(ZoneACLEdit(from: old, to: new).bytes)
      #expect(try edit.applied(to: old) == new)
    }
  }

  @Test func anEditOfOneMemberIsSmall() {
    let old = list((1...1_000).map { entry($0) })
    let new = list(after: old, (1...1_001).map { entry($0) })
    #expect(new.bytes.count > 71_000)
    #expect(ZoneACLEdit(from: old, to: new).bytes.count < 700)
  }

  @Test func anEditFollowsItsList() throws {
    let old = list([entry(1)])
    let edit = ZoneACLEdit(from: old, to: list(after: old, [entry(1), entry(2)]))
    #expect(refusal { _ = try edit.applied(to: list([entry(1), entry(5)])) } == .aclRollback)
  }

  @Test func anEditNamesExactlyWhatDiffers() throws {
    let old = list([entry(1), entry(2)])
    let new = list(after: old, [entry(1), entry(3)])
    // Made against another list, they name more than differs, or a user who is not there.
    for base in [list([entry(2), entry(3)]), list([entry(1), entry(4)])] {
      let edit = ZoneACLEdit(from: base, to: new)
      #expect(refusal { _ = try edit.applied(to: old) } == .nonCanonicalEncoding)
    }
  }

  @Test func usersAndEntriesAscend() throws {
    let old = list([entry(1), entry(2)])
    let bytes = ZoneACLEdit(from: old, to: list(after: old, [])).bytes
    // The removed users are in front of the number of entries, 0, and 108 bytes of writer and signature.
    let users = bytes.count - 108 - 2 - 64
    let swapped = Array(bytes[..<users] + bytes[(users + 32)..<(users + 64)] + bytes[users..<(users + 32)])
    let tail = bytes[(users + 64)...]
    #expect(refusal { _ = try ZoneACLEdit(swapped + tail) } == .nonCanonicalEncoding)
    let twice = Array(bytes[..<(users + 32)] + bytes[users..<(users + 32)])
    #expect(refusal { _ = try ZoneACLEdit(twice + tail) } == .nonCanonicalEncoding)
  }

  @Test func pagesMixListsAndEdits() throws {
    let one = list([entry(1)])
    let two = list(after: one, [entry(1), entry(2)])
    let three = list(after: two, [entry(2)])
    var writer = Bundle.Writer()
    writer.append(aclEdit: ZoneACLEdit(from: one, to: two))
    writer.append(aclEdit: ZoneACLEdit(from: two, to: three))
    let edits = writer.bytes
    #expect(Set(try PageContents(edits, after: one).lists.keys) == [two.hash, three.hash])
    #expect(refusal { _ = try PageContents(edits) } == .nonCanonicalEncoding)
    #expect(refusal { _ = try PageContents(edits, after: three) } == .nonCanonicalEncoding)
    var whole = Bundle.Writer()
    whole.append(acl: one.bytes)
    whole.append(items: edits)
    #expect(try PageContents(whole.bytes).lists[three.hash] == three)
  }
}
