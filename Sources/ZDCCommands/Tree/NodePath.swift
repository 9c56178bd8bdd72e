package import ZeroDarkCloud

/// Parses paths as users type them.
package enum NodePath {
  /// Parses `home:/a/b`, `~/a/b` or `/a/b`.
  package static func parse(_ text: String) throws(CommandError) -> ZDCTreesystemPath {
    guard !text.isEmpty else { throw empty }
    guard let path = ZDCTreesystemPath(text) else {
      throw CommandError(
        .usage, "invalidPath", "not a path in the tree: \(ShownName.text(text))",
        hint: "write home:/a/b, ~/a/b or /a/b; quote the tilde: '~/a'")
    }
    return path
  }

  /// The error for an empty argument, such as an unset shell variable. It must not mean the current folder.
  package static let empty = CommandError(
    .usage, "emptyArgument", "an empty argument is not a path", hint: "check for an unset shell variable")
}
