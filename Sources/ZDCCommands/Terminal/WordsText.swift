/// Formats the 24 words for a terminal: numbered, in columns that fit, without breaking a word. Pure.
package enum WordsText {
  /// - Parameter width: The width of the terminal, in characters.
  package static func lines(_ words: [String], width: Int) -> [String] {
    let cells = words.enumerated().map { index, word in
      (index < 9 ? " " : "") + "\(index + 1) \(word)"
    }
    let column = (cells.map(\.count).max() ?? 0) + 2
    let columns = max(1, min(4, (width + 2) / column))
    return stride(from: 0, to: cells.count, by: columns).map { start in
      let row = cells[start..<min(start + columns, cells.count)]
      let padded = row.dropLast().map { $0 + String(repeating: " ", count: column - $0.count) }
      return padded.joined() + (row.last ?? "")
    }
  }
}
