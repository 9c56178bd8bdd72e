extension String {
  /// The text as a single line that is safe to show next to other text.
  ///
  /// A title may come from another device, or one day from another person. Control characters could change a terminal,
  /// bidirectional overrides could make "gpj.exe" look like "exe.jpg", and invisible characters could make two titles
  /// look alike. All of them are removed. Joiners stay: emoji and several scripts need them.
  public var displayed: String {
    if utf8.allSatisfy({ (0x20..<0x7F).contains($0) }), utf8.contains(where: { $0 != 0x20 }) { return self }
    let visible = unicodeScalars.compactMap { scalar -> Unicode.Scalar? in
      switch scalar.properties.generalCategory {
      case .control, .lineSeparator, .paragraphSeparator: scalar.properties.isWhitespace ? " " : nil
      case .format: scalar.isJoiner ? scalar : nil
      case .surrogate, .privateUse, .unassigned: nil
      default: scalar
      }
    }
    let text = String(String.UnicodeScalarView(visible))
    return text.allSatisfy(\.isWhitespace) || text.unicodeScalars.allSatisfy(\.isJoiner) ? "(no title)" : text
  }
}

extension Unicode.Scalar {
  fileprivate var isJoiner: Bool { self == "\u{200C}" || self == "\u{200D}" }
}
