import Synchronization
import Testing

@testable import ZDCProtocol

/// Signatures that are verified before replay: they save work, and decide nothing.
@Suite struct CommitSignaturesTests {
  private struct Outcome: Equatable {
    /// The number of commits that replay accepted.
    var accepted: Int
    /// The code with which it refused the next one.
    var code: ZDCSecurityError.Code?
  }

  /// Counts how often a key is looked up.
  private final class CountingDirectory: IdentityDirectory, Sendable {
    private let directory: TestDirectory
    private let count = Mutex(0)

    init(_ users: [TestUser]) throws { directory = try TestDirectory(users) }

    var lookups: Int { count.withLock { $0 } }

    func signKey(user: UserID, generation: UInt32) -> [UInt8]? {
      count.withLock { $0 += 1 }
      return directory.signKey(user: user, generation: generation)
    }
  }

  private let alice: TestUser
  private let bob: TestUser
  private let zone: TestZone

  init() throws {
    alice = try TestUser(seed: 1)
    bob = try TestUser(seed: 2)
    zone = try TestZone.born(owner: alice)
  }

  /// Returns a log after the genesis. One commit may have a signature of another key; the later ones follow it.
  private func log(_ count: Int, forged: Int? = nil) throws -> [ZoneCommit] {
    var fields = zone.nextFields([])
    var log: [ZoneCommit] = []
    for index in 0..<count {
      fields.operations = [zone.put(.n(UInt64(index + 1)))]
      let commit = try zone.signed(fields, by: index == forged ? bob : alice)
      log.append(commit)
      fields.seq += 1
      fields.prev = commit.hash
    }
    return log
  }

  private func replay(
    _ log: [ZoneCommit], _ directory: some IdentityDirectory, _ signatures: CommitSignatures = CommitSignatures()
  ) -> Outcome {
    let replay = ZoneReplay(identities: directory, signatures: signatures)
    var head = zone.head
    var state = zone.state
    for (index, commit) in log.enumerated() {
      let code = refusal { head = try replay.apply(commit, acl: nil, after: head, to: &state) }
      if let code { return Outcome(accepted: index, code: code) }
    }
    return Outcome(accepted: log.count)
  }

  @Test func aLongPageIsCheckedOnce() async throws {
    let log = try log(100)
    let directory = try CountingDirectory([alice])
    let signatures = await CommitSignatures.check(log, directory)
    #expect(directory.lookups == 100)
    let key = alice.signKey.publicBytes
    #expect(log.allSatisfy { signatures.contains($0, by: key) })
    #expect(replay(log, directory, signatures) == Outcome(accepted: 100))
  }

  @Test func replayDoesNotVerifyAgain() throws {
    let log = try log(3, forged: 1)
    let directory = try TestDirectory([alice])
    let known = CommitSignatures(keys: [log[1].hash: alice.signKey.publicBytes])
    #expect(replay(log, directory) == Outcome(accepted: 1, code: .signatureInvalid))
    #expect(replay(log, directory, known) == Outcome(accepted: 3))
  }

  @Test func aShortPageIsLeftToReplay() async throws {
    let log = try log(CommitSignatures.minimum - 1)
    let directory = try CountingDirectory([alice])
    let signatures = await CommitSignatures.check(log, directory)
    #expect(directory.lookups == 0)
    #expect(replay(log, directory, signatures) == Outcome(accepted: log.count))
  }

  @Test(arguments: [0, 1, 31, 50, 99])
  func aWrongSignatureIsRefusedInItsPlace(forged: Int) async throws {
    let log = try log(100, forged: forged)
    let directory = try TestDirectory([alice])
    let signatures = await CommitSignatures.check(log, directory)
    #expect(!signatures.contains(log[forged], by: alice.signKey.publicBytes))
    #expect(replay(log, directory, signatures) == Outcome(accepted: forged, code: .signatureInvalid))
    #expect(replay(log, directory) == replay(log, directory, signatures))
  }

  @Test func anEarlierErrorComesFirst() async throws {
    var log = try log(100, forged: 60)
    log.remove(at: 40)
    let directory = try TestDirectory([alice])
    let signatures = await CommitSignatures.check(log, directory)
    #expect(replay(log, directory, signatures) == Outcome(accepted: 40, code: .commitChainBroken))
  }

  @Test func aSignatureCountsForItsKeyOnly() async throws {
    let log = try log(40)
    let signatures = await CommitSignatures.check(log, try TestDirectory([alice]))
    #expect(!signatures.contains(log[0], by: bob.signKey.publicBytes))
    #expect(replay(log, OtherKey(key: bob.signKey.publicBytes), signatures).code == .signatureInvalid)
  }

  @Test func aMissingKeyIsAnUnknownWriter() async throws {
    let log = try log(40)
    let known = try TestDirectory([alice])
    let unknown = try TestDirectory([bob])
    let nothing = await CommitSignatures.check(log, unknown)
    #expect(replay(log, unknown, nothing) == Outcome(accepted: 0, code: .writerUnknown))
    #expect(replay(log, known, nothing) == Outcome(accepted: 40))
    let signatures = await CommitSignatures.check(log, known)
    #expect(replay(log, unknown, signatures) == Outcome(accepted: 0, code: .writerUnknown))
  }

  @Test func aRetiredKeySignsNothingMore() async throws {
    var owner = alice
    try owner.rotateSignKey()
    var zone = zone
    zone.users = [owner]
    try zone.apply([.retireKey(user: owner.id, gen: 2)], by: owner)
    let commit = try zone.commit([zone.put(.n(1))], by: alice)
    let directory = try TestDirectory([owner])
    let page = [ZoneCommit](repeating: commit, count: CommitSignatures.minimum)
    let signatures = await CommitSignatures.check(page, directory)
    #expect(signatures.contains(commit, by: alice.signKey.publicBytes))
    let replay = ZoneReplay(identities: directory, signatures: signatures)
    let head = zone.head
    var state = zone.state
    #expect(refusal { _ = try replay.apply(commit, acl: nil, after: head, to: &state) } == .writerNotAuthorized)
  }

  /// Names another key than the one with which the signatures were checked.
  private struct OtherKey: IdentityDirectory {
    var key: [UInt8]

    func signKey(user: UserID, generation: UInt32) -> [UInt8]? { key }
  }
}
