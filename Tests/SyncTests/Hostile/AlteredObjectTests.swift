import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZeroDarkCloud

/// Flips one bit in every byte of one object of each kind that a server stores, and of the frames around it, and passes
/// the result to the code that receives it on a device. => A typed error, or a node that is known to be missing; never
/// a crash, never a tree.
extension HostileServerTests {
  /// The beginning of a trunk, as a fresh device gets it: first access list, grant, first commit, root record.
  @Test func everyByteOfATrunksBeginning_isNoticed() async throws {
    let act = try await HostileAct.start(
      HostileScenario("B1", story: "", error: "", .fails, from: .fresh) { _ in })
    let page = try await PageTrial.page(act.victim, act.zone.zone, after: nil)
    let root = act.zone.zone.root
    let items = page.filter { item in
      item.commit.map { $0.fields.seq == 0 } ?? item.record.map { $0.fields.node == root } ?? true
    }
    #expect(Set(items.compactMap(\.kind)) == [.acl, .grant, .commit, .record])
    try await PageTrial(act.victim).expectEveryByteIsNoticed(items)
    try await act.end()
  }

  /// The next commit with its record, as received by a device that has everything before it.
  @Test func everyByteOfACommit_andOfItsRecord_isNoticed() async throws {
    let act = try await HostileAct.start(
      HostileScenario("B1", story: "", error: "", .fails, from: .behind) { _ in })
    let head = try #require(act.stage.earlyZone.commits.last)
    let page = try await PageTrial.page(act.victim, act.zone.zone, after: head.fields.seq)
    let commit = try #require(page.first { $0.commit != nil })
    let puts = commit.commit?.fields.operations.compactMap { operation in
      if case .put(let put) = operation { put.record } else { nil }
    }
    let records = page.filter { item in item.record.map { puts?.contains($0.hash) == true } ?? false }
    #expect(records.count == 1)
    try await PageTrial(act.victim).expectEveryByteIsNoticed([commit] + records)
    try await act.end()
  }

  /// A rotation of the zone's key, as received by a device that has everything before it. Its list has the old key,
  /// sealed under the new one, which is in the grant.
  @Test func everyByteOfAListWithOldKeys_andOfItsGrant_isNoticed() async throws {
    let act = try await HostileAct.start(
      HostileScenario("B1", story: "", error: "", .fails, from: .current) { _ in })
    let head = try act.zone.head.fields.seq
    try await act.rogue().rotateHome()
    let items = try await PageTrial.page(act.victim, act.zone.zone, after: head)
    #expect(Set(items.compactMap(\.kind)) == [.acl, .grant, .commit, .record])
    #expect(items.contains { $0.acl?.fields.historyWrap.isEmpty == false })
    try await PageTrial(act.victim).expectEveryByteIsNoticed(items, of: [.acl, .grant])
    try await act.end()
  }

  @Test func everyByteOfAChain_andOfAKeyring_isNoticed() async throws {
    let stage = try #require(HostileStage.current)
    let rogue = try await RogueWriter(words: stage.words, user: stage.user, server: stage.server)
    let (links, keyring) = (try await rogue.chain(), try await rogue.keyring())
    var chain = ZDCProtocol.Bundle.Writer()
    for link in links { chain.append(link: link.bytes) }
    let (honest, key, user) = (chain.bytes, rogue.keys.accessKey, stage.user)
    _ = try UserKeys(chain: honest, keyringBlob: keyring, accessKey: key, expected: user)
    for offset in honest.indices {
      #expect(throws: ZDCSecurityError.self, "at \(offset)") {
        _ = try UserKeys(
          chain: PageTrial.turned(honest, offset), keyringBlob: keyring, accessKey: key, expected: user)
      }
      // The same code runs here after a comparison of bytes, so some of the offsets are enough.
      guard offset.isMultiple(of: 16) else { continue }
      #expect(throws: ZDCSecurityError.self, "at \(offset)") {
        _ = try IdentityChain.compare(pinned: honest, with: PageTrial.turned(honest, offset), of: user)
      }
    }
    for offset in keyring.indices {
      #expect(throws: ZDCSecurityError(.keyringAuthFailed, user: user), "at \(offset)") {
        _ = try UserKeys(
          chain: honest, keyringBlob: PageTrial.turned(keyring, offset), accessKey: key, expected: user)
      }
    }
  }

  @Test func everyByteOfASmallContent_isNoticed() throws {
    let sealed = try ContentSealer.sealSmall(
      metadata: [1, 2, 3], thumbnail: [4, 5], data: Array("all of it".utf8))
    let reference = try ContentReference(content: sealed.content(dataVersion: 1), secrets: sealed.secrets)
    #expect(try ContentOpener.openSmall(sealed.bytes, reference).data == Array("all of it".utf8))
    for offset in sealed.bytes.indices {
      #expect(throws: ZDCSecurityError(.contentHashMismatch), "at \(offset)") {
        _ = try ContentOpener.openSmall(PageTrial.turned(sealed.bytes, offset), reference)
      }
    }
  }
}

/// Applies a page as a pull does, and restores the database afterwards.
private struct PageTrial {
  enum Outcome: Equatable {
    case accepted
    /// A record that the log names is missing, or does not open.
    case incomplete
    case refused(ZDCSecurityError.Code)
  }

  private struct Undo: Error {
    var isComplete: Bool
  }

  private let session: SyncSession
  private let zone: ZoneRow

  init(_ device: TestDevice) async throws {
    let engine = try await device.syncManager.engine(for: device.localUserID)
    session = engine.session
    zone = try #require(try await engine.zones().first { $0.trunk == .home })
  }

  static func page(_ device: TestDevice, _ zone: ZoneID, after seq: UInt64?) async throws -> [ServedItem] {
    let body = try await device.api.commitPage(zone, after: seq, withRecords: true).body
    return ServedItem.items(of: body)
  }

  /// Flips one bit of a byte; which one depends on the offset.
  static func turned(_ bytes: [UInt8], _ offset: Int) -> [UInt8] {
    var turned = bytes
    turned[offset] ^= 1 << UInt8(offset % 8)
    return turned
  }

  /// - Parameter kinds: The kinds of the objects in which bits are flipped.
  func expectEveryByteIsNoticed(
    _ items: [ServedItem], of kinds: Set<ServedKind> = Set(ServedKind.allCases)
  ) async throws {
    #expect(try await outcome(of: ServedItem.body(of: items)) == .accepted)
    for (index, item) in items.enumerated() where item.kind.map(kinds.contains) ?? true {
      var outcomes: Set<String> = []
      let body = ServedItem.body(of: items)
      let start = ServedItem.body(of: Array(items.prefix(index))).count
      // The five bytes of the frame, and the object. The received times between them are only the server's claim.
      let object = start + 5 + item.bytes.count - item.object.count
      for offset in Array(start..<start + 5) + Array(object..<object + item.object.count) {
        let outcome = try await outcome(of: Self.turned(body, offset))
        #expect(outcome != .accepted, "\(item.kind.map { "\($0)" } ?? "?") at \(offset - start)")
        outcomes.insert("\(outcome)")
      }
      #expect(!outcomes.isEmpty)
    }
  }

  private func outcome(of body: [UInt8]) async throws -> Outcome {
    do {
      let page = try PageContents(body)
      try await session.database.asyncReadWrite { [session, zone] transaction in
        let writers = WriterKeys(own: session.keys)
        let pages = PageApplier(session: session, zone: zone.id, transaction: transaction, writers: writers)
        let commits = try pages.apply(page)
        var applier = try ChangeApplier(session: session, zone: zone.id, transaction: transaction)
        let leaves = LogNodeStore(db: transaction.database, zone: zone.id)
        for node in try Self.pending(leaves, root: zone.zone.root) {
          guard let leaf = try leaves.pendingLeaf(node)?.leaf, let record = page.records[leaf.record] else { continue }
          _ = try applier.apply(record, node: node)
        }
        try applier.finishBatch()
        let open = try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM zdc_leaf WHERE pending <> 0")
        throw Undo(isComplete: open == 0 && commits > 0)
      }
      return .accepted
    } catch let undo as Undo {
      return undo.isComplete ? .accepted : .incomplete
    } catch let error as ZDCSecurityError { return .refused(error.code) }
  }

  private static func pending(_ leaves: LogNodeStore, root: NodeID) throws -> [NodeID] {
    var nodes: [NodeID] = []
    try leaves.forEachByDepth(root: root) { leaf in if leaf.isPending { nodes.append(leaf.node) } }
    return nodes
  }
}
