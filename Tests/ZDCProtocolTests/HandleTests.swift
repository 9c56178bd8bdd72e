import Testing
import ZDCProtocol

/// Handles (PROTOCOL 3.2) and the answer to a look-up (4.5).
struct HandleTests {
  @Test(arguments: ["abc", "alice", "a1.b_c-d", "x" + String(repeating: "9", count: 31)])
  func handle(_ text: String) { #expect(Handle(text)?.text == text) }

  @Test(arguments: [
    "", "ab", "a" + String(repeating: "b", count: 32), "1abc", ".abc", "abc.", "abc-", "a..b", "a._b", "Alice",
    "al ice",
    "älice", "аlice", "alice\u{0}", "@alice", "-",
  ])
  func noHandle(_ text: String) { #expect(Handle(text) == nil) }

  @Test func aTypedHandle_mayHaveCapitalsAndAnAtSign() {
    #expect(Handle(typed: "@Alice.B")?.text == "alice.b")
    #expect(Handle(typed: "@@alice") == nil)
    #expect(Handle.beginning(typed: "@Ali") == "ali")
    #expect(Handle.beginning(typed: "alice.") == "alice.")
    #expect(Handle.beginning(typed: "al") == nil)
    #expect(Handle.beginning(typed: "Åli") == nil)
  }

  private func entries(_ names: [String]) throws -> [HandleList.Entry] {
    try names.map {
      HandleList.Entry(handle: try #require(Handle($0)), user: UserID(labelledHash: "user", Array($0.utf8)))
    }
  }

  @Test func anAnswer_hasOneLength_andIsReadAgain() throws {
    for names in [[], ["alice"], (10..<30).map { "alice\($0)" }] {
      let list = try entries(names)
      let bytes = HandleList.bytes(list)
      #expect(bytes.count == HandleList.byteCount)
      #expect(try HandleList.read(bytes, beginning: "ali") == list)
    }
  }

  @Test func anAnswerThatIsNotOfTheForm_isRefused() throws {
    let right = HandleList.bytes(try entries(["alice", "alicia"]))
    var wrong: [[UInt8]] = [Array(right.dropLast()), right + [0]]
    wrong.append(HandleList.bytes(try entries(["alicia", "alice"])))
    wrong.append(HandleList.bytes(try entries(["alice", "alice"])))
    wrong.append(HandleList.bytes(try entries(["alice", "bob"])))
    for (place, byte) in [(0, UInt8(ascii: "A")), (31, 1), (2 * 64 + 40, 1), (3 * 64, UInt8(ascii: "a"))] {
      var bytes = right
      bytes[place] = byte
      wrong.append(bytes)
    }
    for bytes in wrong {
      #expect(throws: ZDCSecurityError(.nonCanonicalEncoding)) { try HandleList.read(bytes, beginning: "ali") }
    }
  }
}
