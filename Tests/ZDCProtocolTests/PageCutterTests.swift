import Testing
import ZDCProtocol

/// A whole log that is cut into pages while it arrives.
@Suite struct PageCutterTests {
  /// Two commits alone, one with its list, one with the edit of a list and a grant. The cutter decodes no item.
  private static let groups: [[UInt8]] = [
    item(.acl, 20) + item(.grant, 7) + item(.commit, 30), item(.commit, 11), item(.aclEdit, 3) + item(.commit, 40),
    item(.commit, 9),
  ]
  private static let log = groups.flatMap { $0 }

  private static func item(_ type: Bundle.ItemType, _ count: Int) -> [UInt8] {
    Codec.rawItem(type, [UInt8](repeating: UInt8(count), count: count))
  }

  private static func pages(
    of bytes: [UInt8], room: Int, slices count: Int
  ) throws -> (pages: [[UInt8]], rest: [UInt8]?) {
    var cutter = Bundle.PageCutter(room: room)
    var pages: [[UInt8]] = []
    for start in stride(from: 0, to: bytes.count, by: count) {
      pages += try cutter.add(Array(bytes[start..<min(start + count, bytes.count)]))
    }
    return (pages, cutter.rest)
  }

  private func refusalOfCutting(_ bytes: [UInt8], slices count: Int) -> ZDCSecurityError.Code? {
    refusal { _ = try Self.pages(of: bytes, room: 1, slices: count) }
  }

  @Test func aPageEndsWithTheFirstCommitThatReachesTheRoom() throws {
    let groups = Self.groups
    let first = groups[0].count
    for room in [0, 1] { #expect(try Self.pages(of: Self.log, room: room, slices: 1_000).pages == groups) }
    #expect(try Self.pages(of: Self.log, room: first, slices: 1_000).pages.first == groups[0])
    let longer = try Self.pages(of: Self.log, room: first + 1, slices: 1_000)
    #expect(longer.pages == [groups[0] + groups[1]])
    #expect(longer.rest == groups[2] + groups[3])
    let whole = try Self.pages(of: Self.log, room: Self.log.count + 1, slices: 1_000)
    #expect(whole.pages.isEmpty && whole.rest == Self.log)
    let exact = try Self.pages(of: Self.log, room: Self.log.count, slices: 1_000)
    #expect(exact.pages == [Self.log] && exact.rest == [])
  }

  @Test(arguments: [1, 40, 72, 73, 100, 1_000]) func theLengthOfTheSlicesDoesNotMatter(room: Int) throws {
    let whole = try Self.pages(of: Self.log, room: room, slices: Self.log.count)
    for count in 1...Self.log.count {
      let cut = try Self.pages(of: Self.log, room: room, slices: count)
      #expect(cut.pages == whole.pages && cut.rest == whole.rest, "slices of \(count)")
    }
    #expect(whole.pages.flatMap { $0 } + (whole.rest ?? []) == Self.log)
  }

  @Test func aLogThatEndsInsideACommitsItemsHasNoRest() throws {
    var ends: Set<Int> = [0]
    for group in Self.groups { ends.insert((ends.max() ?? 0) + group.count) }
    for count in 0...Self.log.count {
      let cut = try Self.pages(of: Array(Self.log.prefix(count)), room: 10_000, slices: 7)
      #expect((cut.rest != nil) == ends.contains(count), "\(count) bytes")
    }
  }

  @Test(arguments: [UInt8(0), 11, 255], [1, 3, 1_000]) func anUnknownTypeIsRefused(type: UInt8, slices: Int) {
    #expect(refusalOfCutting(Self.log + [type, 0, 0, 0, 0], slices: slices) == .nonCanonicalEncoding)
  }

  @Test(
    arguments: [
      (Bundle.ItemType.commit, Limits.commitBytes + 8), (.acl, Limits.aclBytes), (.aclEdit, Limits.aclEditBytes),
      (.grant, Limits.grantBytes),
    ] as [(Bundle.ItemType, Int)])
  func anItemAboveItsLimitIsRefusedByItsHeader(type: Bundle.ItemType, limit: Int) {
    func header(_ length: Int) -> [UInt8] {
      var writer = ByteWriter()
      writer.append(type.rawValue)
      writer.append(UInt32(length))
      return writer.bytes
    }
    for count in [1, 1_000] {
      #expect(refusalOfCutting(Self.log + header(limit + 1), slices: count) == .limitExceeded)
      #expect(refusalOfCutting(Self.log + header(limit), slices: count) == nil)
    }
  }

  @Test func itemsWithoutACommitAreBounded() throws {
    let grants = Self.item(.grant, 200) + Self.item(.acl, 200)
    var cutter = Bundle.PageCutter(room: 1_000)
    var taken = 0
    let code = refusal {
      while taken < 8 << 20 {
        taken += grants.count
        let pages = try cutter.add(grants)
        #expect(pages.isEmpty)
      }
    }
    #expect(code == .limitExceeded)
    // There is room for the longest commit, list and grant.
    let longest = Limits.commitBytes + Limits.aclEditBytes + Limits.grantBytes
    #expect(taken > 1_000 + longest && taken < 2_000 + longest)
  }

  /// - A log whose commits, lists and grants are as long as possible
  /// => it is cut after each commit that reaches the room, however late that is
  @Test func theLongestCommitHasRoom() throws {
    let longest =
      Codec.rawItem(.aclEdit, [UInt8](repeating: 1, count: Limits.aclEditBytes))
      + Codec.rawItem(.grant, [UInt8](repeating: 2, count: Limits.grantBytes))
      + Codec.rawItem(.commit, [UInt8](repeating: 3, count: Limits.commitBytes + 8))
    let short = Self.item(.commit, 9)
    let cut = try Self.pages(of: short + longest + short, room: short.count + 1, slices: 64 << 10)
    #expect(cut.pages == [short + longest] && cut.rest == short)
  }
}
