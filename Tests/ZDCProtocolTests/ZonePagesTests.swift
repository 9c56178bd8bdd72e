import Testing
import ZDCProtocol

@Suite struct ZonePagesTests {
  private let zone = ZoneID(
    tree: TreeID([UInt8](repeating: 1, count: 32))!, root: NodeID([UInt8](repeating: 2, count: 16))!)

  @Test func positionsComeBackAsSent() throws {
    let positions = [nil, 0, 1, UInt64.max - 1].map { ZonePosition(zone: zone, after: $0) }
    let bytes = ZonePosition.bytes(of: positions)
    #expect(bytes.count == positions.count * ZonePosition.byteCount)
    #expect(try ZonePosition.all(bytes) == positions)
    #expect(Array(bytes[48..<56]) == [UInt8](repeating: 0, count: 8))
  }

  @Test func pagesComeBackAsSent() throws {
    let head = CommitHash([UInt8](repeating: 3, count: 32))!
    let log = ZonePage.Log(seq: 5, head: head, hasMore: true, body: [1, 2, 3])
    var out = ByteWriter()
    for page in [ZonePage(zone: zone, log: nil), ZonePage(zone: zone, log: log)] { page.append(to: &out) }
    #expect(out.bytes.count == 49 + ZonePage.headerBytes + 3)
    let pages = try ZonePage.all(out.bytes)
    #expect(pages.map(\.zone) == [zone, zone] && pages[0].log == nil)
    let read = try #require(pages[1].log)
    #expect((read.seq, read.head, read.hasMore) == (5, head, true) && Array(read.body) == [1, 2, 3])
  }

  @Test func hostileBytesAreRefused() throws {
    var out = ByteWriter()
    ZonePage(zone: zone, log: ZonePage.Log(seq: 5, head: .zero, hasMore: false, body: [1])).append(to: &out)
    for cut in 1..<out.bytes.count {
      #expect(throws: ZDCSecurityError.self) { try ZonePage.all(Array(out.bytes.prefix(cut))) }
    }
    var wrong = out.bytes
    wrong[48] = 3
    #expect(throws: ZDCSecurityError(.nonCanonicalEncoding)) { try ZonePage.all(wrong) }
    var long = out.bytes
    long.replaceSubrange(89..<93, with: [0xFF, 0xFF, 0xFF, 0xFF])
    #expect(throws: ZDCSecurityError.self) { try ZonePage.all(long) }
    var many = ByteWriter()
    for _ in 0...Limits.zonesPerRequest { ZonePage(zone: zone, log: nil).append(to: &many) }
    #expect(throws: ZDCSecurityError(.nonCanonicalEncoding)) { try ZonePage.all(many.bytes) }
    let positions = [ZonePosition](repeating: ZonePosition(zone: zone, after: 1), count: Limits.zonesPerRequest + 1)
    #expect(throws: ZDCSecurityError(.limitExceeded)) { try ZonePosition.all(ZonePosition.bytes(of: positions)) }
  }
}
