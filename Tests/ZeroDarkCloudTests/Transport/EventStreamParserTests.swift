import Testing
import ZDCProtocol

@testable import ZDCClientAPI
@testable import ZeroDarkCloud

@Suite struct EventStreamParserTests {
  private func events(_ text: String, limit: Int = 1 << 20) throws -> [EventStreamParser.Event] {
    var parser = EventStreamParser(limit: limit)
    return try parser.push(Array(text.utf8))
  }

  private func event(_ name: String, _ data: String, id: String? = nil) -> EventStreamParser.Event {
    EventStreamParser.Event(name: name, data: Array(data.utf8), id: id)
  }

  @Test func anEventIsNamedAndHasDataAndAnID() throws {
    #expect(try events("event: head\nid: 17\ndata: {}\n\n") == [event("head", "{}", id: "17")])
  }

  @Test func commentsUnknownFieldsAndEmptyEventsMeanNothing() throws {
    let text = ": keep-alive\n\nretry: 5\nevent: head\n\nevent\ndata:x\n\n"
    #expect(try events(text) == [event("message", "x")])
  }

  @Test func severalDataLinesAreJoined_andOnlyOneSpaceIsTaken() throws {
    #expect(try events("data: a\ndata:  b\ndata\n\n") == [event("message", "a\n b\n")])
  }

  @Test func theIDStays_nameAndDataDoNot() throws {
    let text = "event: head\nid: 1\ndata: a\n\ndata: b\n\n"
    #expect(try events(text) == [event("head", "a", id: "1"), event("message", "b", id: "1")])
  }

  @Test func anUnfinishedEventIsNotDelivered() throws {
    #expect(try events("data: a\n") == [])
    #expect(try events("data: a") == [])
  }

  @Test(arguments: ["\n", "\r\n", "\r"])
  func howeverTheBytesAreCut_theEventsAreTheSame(newline: String) throws {
    let lines = [
      ": hello", "event: zones", "id: 9", "data: {\"feedPosition\":\"9\"}", "", "event: head", "data: é", "data: x", "",
      "",
    ]
    let bytes = Array(lines.joined(separator: newline).utf8)
    let expected = [event("zones", "{\"feedPosition\":\"9\"}", id: "9"), event("head", "é\nx", id: "9")]
    for first in 0...bytes.count {
      for second in stride(from: first, through: bytes.count, by: 3) {
        var parser = EventStreamParser()
        var found = try parser.push(bytes[..<first])
        found += try parser.push(bytes[first..<second])
        found += try parser.push(bytes[second...])
        #expect(found == expected)
      }
    }
  }

  @Test func aLineWithoutEndIsRefused_beforeItFillsTheMemory() {
    var parser = EventStreamParser(limit: 1_000)
    let part = [UInt8](repeating: UInt8(ascii: "a"), count: 400)
    #expect(throws: Never.self) { try parser.push(part) }
    #expect(throws: Never.self) { try parser.push(part) }
    #expect(throws: ZDCSecurityError(.limitExceeded)) { try parser.push(part) }
  }

  @Test func anEventOfTooManyLinesIsRefused() {
    let line = "data: " + String(repeating: "a", count: 300) + "\n"
    #expect(throws: ZDCSecurityError(.limitExceeded)) {
      try events(String(repeating: line, count: 4), limit: 1_000)
    }
  }
}
