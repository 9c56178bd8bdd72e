/// The sentences of one source file, in its order.
struct SentenceFile {
  private(set) var lines: [String] = []
  private var words: [String] = []
  private let exitCodes: [String: String]
  private let rule: Rule

  /// Which literals count as sentences.
  enum Rule {
    /// All literals. Single words, such as codes and keys of JSON, stand together at the end.
    case everything
    /// Texts of at least two words, and what is logged. SQL and formats are no sentences.
    case prose
  }

  /// - Parameters:
  ///   - exitCodes: numbers by the names of exit codes.
  ///   - known: whether the reader has seen a text in the help already.
  init(_ source: SwiftLiterals, rule: Rule, exitCodes: [String: String], known: (String) -> Bool = { _ in false }) {
    self.exitCodes = exitCodes
    self.rule = rule
    var code: (exit: String, text: String)?
    for literal in source.literals {
      var label = label(of: literal)
      if isSentence(literal) {
        label.exit = code.map { "\($0.exit), \($0.text)" } ?? label.exit
        code = nil
        if !known(literal.text) { add(label, literal.text) }
      } else if rule == .everything, let exit = label.exit {
        code = (exit, literal.text)
      } else if rule == .everything, literal.text.contains(where: \.isLetter), !known(literal.text) {
        words.append(literal.text)
      }
    }
    lines += exits(in: source.codeAfter)
    if !words.isEmpty { lines.append("words: " + Set(words).sorted().joined(separator: " · ")) }
  }

  private mutating func add(_ label: Label, _ text: String) {
    lines += label.exitsBefore
    let exit = label.exit.map { "[exit \($0)] " } ?? ""
    let name = label.name.map { "\($0): " } ?? ""
    lines.append(exit + name + text)
  }
}

// MARK: Labels

extension SentenceFile {
  /// The meaning of a literal, by the code before it.
  private struct Label {
    /// The exit code of the error that the text describes.
    var exit: String?
    /// The cases that the text is for, or the name of the argument that it is given as.
    var name: String?
    /// Cases that have an exit code and no text.
    var exitsBefore: [String] = []
  }

  private func label(of literal: SwiftLiteral) -> Label {
    let code = literal.codeBefore
    var label = Label()
    if let match = code.firstMatch(of: Self.labelOfCases) {
      label.name = String(match.output.1)
      label.exit = match.output.2.flatMap { exitCodes[String($0)] }
      label.exitsBefore = exits(in: String(code[..<match.range.lowerBound]))
      return label
    }
    if let match = code.firstMatch(of: /\( ?\.(\w+),$/) { label.exit = exitCodes[String(match.output.1)] }
    if code.hasSuffix("hint:") { label.name = "hint" }
    label.exitsBefore = exits(in: code)
    return label
  }

  /// `case .notFound, .gone(let date): (.noInput,`, or `.diskFull:` in a dictionary.
  private static var labelOfCases: Regex<(Substring, Substring, Substring?)> {
    /(?:case )?((?:\.\w+(?:\([^()]*\)\??)?, )*\.\w+(?:\([^()]*\)\??)?(?: where [^:]+)?): ?\(? ?(?:\.(\w+),)?$/
  }

  /// Cases that the code maps to an exit code: `case .diskFull, .localUserExists: .cannotCreate`.
  private func exits(in code: String) -> [String] {
    code.matches(of: /case ([^:{}]+): \(? ?\.(\w+)\b/).compactMap { match in
      exitCodes[String(match.output.2)].map { "[exit \($0)] \(match.output.1)" }
    }
  }
}

// MARK: Sentences

extension SentenceFile {
  private func isSentence(_ literal: SwiftLiteral) -> Bool {
    let own = literal.text.replacing(/«[^»]*»/, with: "…")
    switch rule {
    case .everything: return own.contains(/\S\s+\S/) && own.contains { $0.isLetter || $0 == "…" }
    case .prose:
      guard own.contains(where: \.isLetter), !Self.isSQL(own) else { return false }
      return own.contains(/[A-Za-z…][,;:.)]? [(]?[A-Za-z…]/)
        || literal.codeBefore.contains(/\.(trace|debug|info|notice|warning|error|critical)\($/)
    }
  }

  private static let sqlWords: Set<Substring> = [
    "ALTER", "AND", "ATTACH", "BEGIN", "BETWEEN", "COMMIT", "CREATE", "DELETE", "DETACH", "DROP", "FROM", "GROUP", "IN",
    "INSERT", "JOIN", "LEFT", "LIMIT", "NOT", "ON", "ORDER", "PRAGMA", "RELEASE", "REPLACE", "RETURNING", "ROLLBACK",
    "SAVEPOINT", "SELECT", "SET", "UNION", "UPDATE", "VACUUM", "VALUES", "WHERE", "WITH",
  ]

  private static func isSQL(_ text: String) -> Bool {
    text.split { !$0.isLetter && $0 != "_" }.first.map(sqlWords.contains) ?? false
      // A list of columns, or what surrounds a value.
      || text.contains(
        /^\w+(, \w+)+$|\b(INDEX|JOIN|TABLE)\b|\w (=|<|>|<=|>=|IS|IN) (\?|:|…|\(|NULL|NOT)|, \w+ = | FROM \w/)
  }
}
