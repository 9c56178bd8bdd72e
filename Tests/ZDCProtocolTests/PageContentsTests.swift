import Testing
import ZDCProtocol

/// What a page says about its commits, before they are verified.
@Suite struct PageContentsTests {
  private let alice: TestUser
  private let bob: TestUser
  private let page: PageContents

  /// A page with commits of two writers in turns, one that retires a key, and two that delete nodes.
  init() throws {
    (alice, bob) = (try TestUser(seed: 1), try TestUser(seed: 2))
    let zone = try TestZone.born(owner: alice, members: [(bob, [.read, .write])])
    let changes: [(TestUser, [ZoneOperation])] = [
      (alice, [zone.put(.n(1)), zone.put(.n(2))]), (bob, [zone.put(.n(3))]), (bob, [zone.put(.n(4))]),
      (alice, [.retireKey(user: bob.id, gen: 3), zone.put(.n(5))]),
      (bob, [.delete(node: .n(1), record: .zero, liveDescendants: 0)]),
      (alice, [zone.put(.n(6)), .delete(node: .n(2), record: .zero, liveDescendants: 4)]),
    ]
    var bytes = Bundle.Writer()
    for (index, (writer, operations)) in changes.enumerated() {
      var fields = zone.nextFields(operations, by: writer)
      fields.seq = UInt64(index)
      bytes.append(commit: try zone.signed(fields, by: writer).bytes, receivedMs: 1)
    }
    page = try PageContents(bytes.bytes)
  }

  @Test func signersAreWritersAndRetiredKeys() {
    let ofBob = [1, 3].map { Signer(user: bob.id, generation: $0) }
    let ofAlice = Signer(user: alice.id, generation: 1)
    #expect(page.signers == Set([ofAlice] + ofBob))
    #expect(page.signers == Set(page.commits.flatMap(\.commit.signers)))
    #expect(page.memberSigners(after: nil) == [])
  }

  @Test func deletesAreThoseOfNewCommits() {
    #expect(page.deletes(after: nil) == [.n(1), .n(2)])
    #expect(page.deletes(after: 3) == [.n(1), .n(2)])
    #expect(page.deletes(after: 4) == [.n(2)])
    #expect(page.deletes(after: 5) == [])
  }
}
