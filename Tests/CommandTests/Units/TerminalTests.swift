import Testing
import ZDCCommands

@Suite("Text on the terminal")
struct TerminalTests {
  @Test func aProgressLine_showsTotalsRateAndTimeLeft() {
    var line = ProgressLine(verb: "put", itemsTotal: 240, bytesTotal: 4_000_000)
    line.itemsDone = 120
    line.bytesDone = 2_000_000
    #expect(
      line.text(seconds: 2, width: 100)
        == "put  [####################--------------------]   50%  120/240  1.9 MiB/3.8 MiB  977 KiB/s  0:02")
    #expect(line.text(seconds: 0, width: 30) == "put   50%  120/240  1.9 MiB/3.")
  }

  @Test func aProgressLine_isNeverWiderThanTheTerminal_norAbove100Percent() {
    var line = ProgressLine(verb: "get", itemsTotal: 3, bytesTotal: 10)
    line.itemsDone = 5
    line.bytesDone = 900
    for width in 0..<200 { #expect(line.text(seconds: 3, width: width).count <= width) }
    #expect(line.fraction == 1)
    #expect(ProgressLine(verb: "x").fraction == 0)
  }

  @Test func amounts() {
    #expect(Amounts.bytes(0) == "0 B")
    #expect(Amounts.bytes(1_023) == "1023 B")
    #expect(Amounts.bytes(1_024) == "1.0 KiB")
    #expect(Amounts.bytes(10_240) == "10 KiB")
    #expect(Amounts.bytes(1_048_575) == "1.0 MiB")
    #expect(Amounts.bytes(.max) == "16 EiB")
    #expect(Amounts.duration(seconds: 7) == "0:07")
    #expect(Amounts.duration(seconds: 3_723) == "1:02:03")
    #expect(Amounts.count(1, "node") == "1 node")
    #expect(Amounts.count(0, "node") == "0 nodes")
  }

  @Test func hostileNames_areShownHarmless() {
    for name in HostileNames.all {
      let shown = ShownName.text(name)
      #expect(!shown.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) })
      #expect(
        !shown.unicodeScalars.contains { (0x202A...0x202E).contains($0.value) || (0x2066...0x2069).contains($0.value) })
    }
    #expect(ShownName.text("a\u{1B}[2Jb") == "a\\u{1b}[2Jb")
    #expect(ShownName.text("naïve.txt") == "naïve.txt")
  }

  @Test func aTreeIsDrawnWithItsBranches() {
    let lines = TreeDrawing.lines([(0, "home:/"), (1, "a"), (2, "b"), (3, "c"), (2, "d"), (1, "e"), (2, "f")])
    #expect(
      lines == ["home:/", "├── a", "│   ├── b", "│   │   └── c", "│   └── d", "└── e", "    └── f"])
    #expect(TreeDrawing.lines([(4, "x"), (5, "y")]) == ["x", "└── y"])
    #expect(TreeDrawing.lines([]).isEmpty)
  }

  @Test("Wish 10: the words are numbered, and none is broken at the edge", arguments: [20, 30, 60, 80, 100, 200])
  func theWordsFitTheTerminal(width: Int) {
    let words = (1...24).map { String(repeating: "w", count: 3 + $0 % 6) }
    let lines = WordsText.lines(words, width: width)
    #expect(lines.allSatisfy { $0.count <= width })
    let cells = lines.joined(separator: " ").split(separator: " ").map(String.init)
    #expect(cells == words.enumerated().flatMap { ["\($0 + 1)", $1] })
    #expect(WordsText.lines(["one", "two"], width: 80) == [" 1 one   2 two"])
  }
}
