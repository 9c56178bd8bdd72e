import Foundation
import Testing

/// Keeps every sentence that a command can print in one file that a person can read, `Tests/CommandTests/Sentences.txt`.
@Suite struct SentenceTests {
  @Test func theFileHoldsEverySentence() async throws {
    let text = try await SentenceCatalogue.text()
    if ProcessInfo.processInfo.environment["ZDC_UPDATE_SENTENCES"] == "1" {
      try text.write(to: SentenceCatalogue.file, atomically: true, encoding: .utf8)
    }
    let kept = try String(contentsOf: SentenceCatalogue.file, encoding: .utf8)
    let changes = lines(text).difference(from: lines(kept)).map { change in
      switch change {
      case .insert(_, let line, _): "+ \(line)"
      case .remove(_, let line, _): "- \(line)"
      }
    }
    #expect(changes.isEmpty, "run `make sentences` and read what changed:\n\(changes.joined(separator: "\n"))")
  }

  private func lines(_ text: String) -> [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }

  // MARK: The reader of literals

  private func texts(_ source: String) -> [String] { SwiftLiterals(source).literals.map(\.text) }

  @Test func literalsAreFoundOutsideOfCommentsOnly() {
    #expect(texts(#"let a = "one" // "two""#) == ["one"])
    #expect(texts(#"/* "one" /* "two" */ "three" */ let a = "four""#) == ["four"])
    #expect(texts(##"let a = #"say "one" \n"#; let b = "two""##) == [#"say "one" \n"#, "two"])
    #expect(texts(#"let a = text.split(/"/); let b = 4 / 2; let c = "one""#) == ["one"])
  }

  @Test func interpolationsAreShownAsTheirExpressions() {
    #expect(texts(#"let a = "sent \(count)  nodes""#) == ["sent «count» nodes".replacing("» ", with: "»  ")])
    #expect(texts(#"let a = "\(n == 1 ? "a node" : f("b)")) left""#) == [#"«n == 1 ? "a node" : f("b)")» left"#])
    #expect(texts(##"let a = #"\(no) \#(yes)"#"##) == [#"\(no) «yes»"#])
  }

  @Test func joinedLiteralsAreOne() {
    #expect(texts("let a = \"one \"\n  + \"two\", b = \"three\"") == ["one two", "three"])
    #expect(texts("let a = \"\"\"\n    one \\\n    two\n      three\n    \"\"\"") == ["one two\n  three"])
    #expect(texts(#"let a = "line\n""#) == ["line⏎"])
  }

  // MARK: Sentences of a file

  private func lines(_ source: String, _ rule: SentenceFile.Rule) -> [String] {
    SentenceFile(SwiftLiterals(source), rule: rule, exitCodes: ["data": "65", "usage": "64"]).lines
  }

  @Test func errorsHaveTheirExitCodes() {
    for start in ["", "\n  "] {
      let source = "throw CommandError(\(start).data, \"differ\", \"they differ\", hint: \"type it again\")"
      #expect(lines(source, .everything) == ["[exit 65, differ] they differ", "hint: type it again"])
    }
    #expect(
      lines(#"case .a, .b(let c): (.usage, "wrong \(c)")"#, .everything) == ["[exit 64] .a, .b(let c): wrong «c»"])
    #expect(lines("case .a, .b: .usage\ncase .c: (.data, nil)", .everything) == ["[exit 64] .a, .b", "[exit 65] .c"])
  }

  @Test func aCommandsLiteralsAreAllKept() {
    #expect(
      lines(#"output.line("\(name)  \(size)"); f("done", "code")"#, .everything) == [
        "«name»  «size»", "words: code · done",
      ])
  }

  @Test func theFrameworksTextsAreKept_andItsSQLIsNot() {
    #expect(lines(#"sql("SELECT a FROM b"); f("code"); g("WHERE zone = ?")"#, .prose) == [])
    #expect(lines(#"case .diskFull: "the disk is full""#, .prose) == [".diskFull: the disk is full"])
    #expect(lines(#"logger.notice("stopping"); logger.info("\(count) left")"#, .prose) == ["stopping", "«count» left"])
  }
}
