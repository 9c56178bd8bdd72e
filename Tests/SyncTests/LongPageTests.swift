import Testing
import ZDCCrypto
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCClientStore
@testable import ZDCProtocol
@testable import ZDCSync
@testable import ZeroDarkCloud

/// Pages with many commits, which a device replays with signatures that it has verified before the transaction.
struct LongPageTests {
  private enum Outcome: Equatable, Sendable {
    /// The hashes in the table of the log, one for each commit of the page.
    case accepted([CommitHash?])
    case refused(ZDCSecurityError.Code)
  }

  private struct Undo: Error {
    var hashes: [CommitHash?]
  }

  /// The next 150 commits of a home zone, each of which puts a node.
  private struct Page {
    let session: SyncSession
    let zone: ZoneRow
    var commits: [ZoneCommit] = []

    /// - Parameter forged: The commit that a stranger's key signs.
    init(_ world: TestWorld, forged: Int? = nil) async throws {
      let a = try await world.device("A")
      let user = try #require(UserID(text: try a.localUserID))
      let rogue = try await RogueWriter(words: try #require(world.words()), user: user, server: world.server)
      try await a.pull()
      let engine = try await a.syncManager.engine(for: a.localUserID)
      session = engine.session
      zone = try #require(try await engine.zones().first { $0.trunk == .home })
      let home = try await rogue.home()
      for index in 0..<150 {
        let put = ZoneOperation.Put(
          node: .random(), parent: home.zone.root, record: RecordHash(9, 9, 9, UInt64(index)), keyGen: 1,
          parentKeyGen: 1)
        let signer = index == forged ? SigningKey.random() : nil
        commits.append(try home.commit([.put(put)], after: commits.last, signedBy: signer))
      }
    }

    func check() async -> CommitSignatures {
      await CommitSignatures.check(commits, WriterKeys(own: session.keys))
    }

    /// Applies the page as a pull does, and restores the database afterwards.
    func apply(_ signatures: CommitSignatures = CommitSignatures()) async throws -> Outcome {
      var bytes = ZDCProtocol.Bundle.Writer()
      for commit in commits { bytes.append(commit: commit.bytes, receivedMs: 7) }
      let page = try PageContents(bytes.bytes)
      do {
        try await session.database.asyncReadWrite { [session, zone] transaction in
          let applier = PageApplier(
            session: session, zone: zone.id, transaction: transaction, writers: WriterKeys(own: session.keys),
            signatures: signatures)
          _ = try applier.apply(page)
          let log = CommitLogStore(db: transaction.database, zone: zone.id)
          throw Undo(hashes: try page.commits.map { try log.hash(seq: $0.commit.fields.seq) })
        }
        throw TestFailure("nothing was undone")
      } catch let undo as Undo {
        return .accepted(undo.hashes)
      } catch let error as ZDCSecurityError {
        return .refused(error.code)
      }
    }
  }

  @Test func everyCommit_isInTheLog() async throws {
    try await TestWorld.run { world in
      let page = try await Page(world)
      let hashes = page.commits.map { Optional($0.hash) }
      let signatures = await page.check()
      #expect(try await page.apply(signatures) == .accepted(hashes))
      #expect(try await page.apply() == .accepted(hashes))
    }
  }

  /// => the same error as without the check, and nothing of the page is kept
  @Test func aWrongSignatureInTheMiddle_isRefused() async throws {
    try await TestWorld.run { world in
      let page = try await Page(world, forged: 75)
      let signatures = await page.check()
      let keys = page.session.keys
      let key = try #require(try keys.signKey(user: keys.userID, generation: keys.signGen))
      #expect(page.commits.filter { signatures.contains($0, by: key) }.count == 149)
      #expect(try await page.apply(signatures) == .refused(.signatureInvalid))
      #expect(try await page.apply() == .refused(.signatureInvalid))
      // The transaction does not verify what was verified before it.
      let all = CommitSignatures(keys: [page.commits[75].hash: key])
      #expect(try await page.apply(all) == .accepted(page.commits.map { Optional($0.hash) }))
    }
  }
}
