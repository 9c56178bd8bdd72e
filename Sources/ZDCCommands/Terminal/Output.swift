internal import Foundation

/// The output of a command: results go to standard output, notes and warnings to standard error.
package struct Output: Sendable {
  package var isJSON: Bool
  package var isQuiet: Bool

  package init(isJSON: Bool, isQuiet: Bool) {
    self.isJSON = isJSON
    self.isQuiet = isQuiet
  }

  /// Whether a progress bar may be drawn.
  package var showsProgress: Bool { !isJSON && !isQuiet && Terminal.isErrorTerminal }

  /// Writes a line of text; not with `--json`.
  package func line(_ text: String) {
    if !isJSON { Terminal.writeOutput(text + "\n") }
  }

  /// Writes the words of an account: in columns on a terminal, otherwise on one line for `--words-file -`.
  package func words(_ words: [String]) {
    guard Terminal.isOutputTerminal else { return line(words.joined(separator: " ")) }
    for text in WordsText.lines(words, width: Terminal.width) { line(text) }
  }

  /// Writes one JSON object on one line; only with `--json`.
  package func object(_ value: some Encodable) throws {
    if isJSON { Terminal.writeOutput(try Self.json(value) + "\n") }
  }

  /// Writes a note, which `--quiet` suppresses.
  package func note(_ text: String) {
    if !isQuiet && !isJSON { Terminal.writeError(text + "\n") }
  }

  /// Writes a warning, even with `--quiet`.
  package func warning(_ text: String) {
    Terminal.writeError("zdc: \(text)\n")
  }

  package static func json(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }
}

/// Collects lines and writes them in large pieces: a listing of ten thousand nodes takes only a few writes.
package struct LineBuffer {
  private var text = ""
  private static let piece = 1 << 16

  package init() {}

  package mutating func append(_ line: String) {
    text += line
    text += "\n"
    if text.utf8.count >= Self.piece { flush() }
  }

  package mutating func flush() {
    guard !text.isEmpty else { return }
    Terminal.writeOutput(text)
    text = ""
  }
}
