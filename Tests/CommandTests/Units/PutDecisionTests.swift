import Testing
import ZDCCommands

@Suite("Decisions of put for a file")
struct PutDecisionTests {
  private static let time = FileTime(seconds: 1_000, nanoseconds: 5)

  private func facts(
    _ kind: FileAttributes.Kind = .file, size: UInt64 = 10, mode: UInt16 = 0o644, time: FileTime = time
  ) throws -> FileAttributes {
    FileAttributes(kind: kind, size: size, mode: mode, time: time)
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

  @Test func newerFilesInTheTree_stayWithoutOverwrite() throws {
    #expect(PutDecision.decide(try facts(), over: existing(eTag: "2"), overwrite: false) == .newerInTree)
    #expect(PutDecision.decide(try facts(size: 11), over: existing(eTag: "2"), overwrite: false) == .conflict)
    #expect(PutDecision.decide(try facts(), over: existing(eTag: "2"), overwrite: true) == .update)
    #expect(PutDecision.decide(try facts(size: 11), over: existing(eTag: "2"), overwrite: true) == .update)
  }

  @Test func queuedContent_isTheNewest() throws {
    #expect(PutDecision.decide(try facts(), over: existing(eTag: "2", queued: true), overwrite: false) == .unchanged)
    #expect(
      PutDecision.decide(try facts(size: 11), over: existing(eTag: "2", queued: true), overwrite: false) == .update)
  }

  @Test func aFileThatThisDeviceHasNotSeen_isNotReplaced() throws {
    let unknown = PutDecision.Existing(eTag: "1", size: 9, isQueued: false, hasChildren: false, record: nil)
    #expect(PutDecision.decide(try facts(), over: unknown, overwrite: false) == .conflict)
    #expect(PutDecision.decide(try facts(), over: unknown, overwrite: true) == .update)
    let empty = PutDecision.Existing(eTag: nil, isQueued: false, hasChildren: false, record: nil)
    #expect(PutDecision.decide(try facts(), over: empty, overwrite: false) == .update)
  }

  @Test func fileAndFolder_areNotExchanged() throws {
    #expect(PutDecision.decide(try facts(), over: existing(kind: .folder), overwrite: true) == .folderInPlace)
    #expect(PutDecision.decide(try facts(.folder), over: existing(), overwrite: true) == .fileInPlace)
    let parent = PutDecision.Existing(eTag: "1", isQueued: false, hasChildren: true, record: nil)
    #expect(PutDecision.decide(try facts(), over: parent, overwrite: true) == .folderInPlace)
    #expect(PutDecision.decide(try facts(.folder), over: parent, overwrite: false) == .update)
  }

  @Test("M2: a folder never replaces a file that this device has not fetched", arguments: [false, true])
  func theKindOfAnUnfetchedNode_comesFromItsContent(overwrite: Bool) throws {
    func decide(
      _ kind: FileAttributes.Kind, size: UInt64, children: Bool = false, fetched: FileMetadata.Kind? = nil
    ) throws
      -> PutDecision
    {
      let unfetched = PutDecision.Existing(
        eTag: "1", size: size, isQueued: false, hasChildren: children, record: nil, fetchedKind: fetched)
      return PutDecision.decide(try facts(kind), over: unfetched, overwrite: overwrite)
    }
    #expect(try decide(.folder, size: 9) == .fileInPlace)
    #expect(try decide(.folder, size: 9, children: true) == .fileInPlace)
    #expect(try decide(.file, size: 9, children: true) == .folderInPlace)
    #expect(try decide(.file, size: 9) == (overwrite ? .update : .conflict))
    #expect(try decide(.folder, size: 0) == .unknownKind)
    #expect(try decide(.file, size: 0) == .unknownKind)
    #expect(try decide(.folder, size: 0, fetched: .file) == .fileInPlace)
    #expect(try decide(.folder, size: 0, fetched: .folder) == .update)
    #expect(try decide(.file, size: 0, fetched: .folder) == .folderInPlace)
    #expect(try decide(.file, size: 0, fetched: .file) == (overwrite ? .update : .conflict))
  }

  @Test("M2: a folder that this device knew may be a file by now")
  func anOldRecord_isNotTrusted() throws {
    var newer = existing(eTag: "2", kind: .folder)
    newer.size = 9
    #expect(PutDecision.decide(try facts(.folder), over: newer, overwrite: true) == .fileInPlace)
  }

  @Test("M4: with overwrite, only the very file that was sent is unchanged")
  func anotherFileOfEqualSizeAndTime_isSent() throws {
    func stamp(_ inode: UInt64, _ seconds: Int64) -> FileStamp {
      FileStamp(device: 1, inode: inode, time: FileTime(seconds: seconds, nanoseconds: 0))
    }
    var sent = existing()
    sent.record?.stamp = stamp(7, 1)
    for (now, isSame) in [(stamp(7, 1), true), (stamp(8, 1), false), (stamp(7, 2), false), (nil, false)] {
      var facts = try facts()
      facts.stamp = now
      #expect(PutDecision.decide(facts, over: sent, overwrite: true) == (isSame ? .unchanged : .update))
      #expect(PutDecision.decide(facts, over: sent, overwrite: false) == .unchanged)
    }
  }
}
