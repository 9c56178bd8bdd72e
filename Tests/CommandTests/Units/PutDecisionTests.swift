import Testing
import ZDCCommands

@Suite("What put does with a file")
struct PutDecisionTests {
  private static let time = FileTime(seconds: 1_000, nanoseconds: 5)

  private func facts(
    _ kind: FileFacts.Kind = .file, size: UInt64 = 10, mode: UInt16 = 0o644, time: FileTime = time
  ) throws -> FileFacts {
    FileFacts(kind: kind, size: size, mode: mode, time: time)
  }

  private func existing(
    eTag: String? = "1", recorded: String? = "1", queued: Bool = false, children: Bool = false,
    kind: FileMetadata.Kind = .file
  ) -> PutDecision.Existing {
    let record = FileRecord(FileMetadata(kind: kind, mode: 0o644, time: Self.time), size: 10, eTag: recorded)
    return PutDecision.Existing(eTag: eTag, isQueued: queued, hasChildren: children, record: record)
  }

  @Test func aNewNameIsCreated() throws {
    #expect(PutDecision.decide(try facts(), over: nil, overwrite: false) == .create)
  }

  @Test func sizeModeAndTimeDecideWhetherItChanged() throws {
    #expect(PutDecision.decide(try facts(), over: existing(), overwrite: false) == .unchanged)
    #expect(PutDecision.decide(try facts(size: 11), over: existing(), overwrite: false) == .update)
    #expect(PutDecision.decide(try facts(mode: 0o600), over: existing(), overwrite: false) == .update)
    let later = FileTime(seconds: 1_000, nanoseconds: 6)
    #expect(PutDecision.decide(try facts(time: later), over: existing(), overwrite: false) == .update)
  }

  @Test func whatIsNewerInTheTree_staysUnlessAsked() throws {
    #expect(PutDecision.decide(try facts(), over: existing(eTag: "2"), overwrite: false) == .newerInTree)
    #expect(PutDecision.decide(try facts(size: 11), over: existing(eTag: "2"), overwrite: false) == .conflict)
    #expect(PutDecision.decide(try facts(), over: existing(eTag: "2"), overwrite: true) == .update)
    #expect(PutDecision.decide(try facts(size: 11), over: existing(eTag: "2"), overwrite: true) == .update)
  }

  @Test func whatIsQueuedHere_isTheNewest() throws {
    #expect(PutDecision.decide(try facts(), over: existing(eTag: "2", queued: true), overwrite: false) == .unchanged)
    #expect(
      PutDecision.decide(try facts(size: 11), over: existing(eTag: "2", queued: true), overwrite: false) == .update)
  }

  @Test func aFileThatNobodyHereHasSeen_isNotReplaced() throws {
    let unknown = PutDecision.Existing(eTag: "1", isQueued: false, hasChildren: false, record: nil)
    #expect(PutDecision.decide(try facts(), over: unknown, overwrite: false) == .conflict)
    #expect(PutDecision.decide(try facts(), over: unknown, overwrite: true) == .update)
    let empty = PutDecision.Existing(eTag: nil, isQueued: false, hasChildren: false, record: nil)
    #expect(PutDecision.decide(try facts(), over: empty, overwrite: false) == .update)
  }

  @Test func fileAndFolder_areNotExchanged() throws {
    #expect(PutDecision.decide(try facts(), over: existing(kind: .folder), overwrite: true) == .otherKind)
    #expect(PutDecision.decide(try facts(.folder), over: existing(), overwrite: true) == .otherKind)
    let parent = PutDecision.Existing(eTag: "1", isQueued: false, hasChildren: true, record: nil)
    #expect(PutDecision.decide(try facts(), over: parent, overwrite: true) == .otherKind)
    #expect(PutDecision.decide(try facts(.folder), over: parent, overwrite: false) == .update)
  }
}
