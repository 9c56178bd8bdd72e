internal import ZDCProtocol
internal import ZeroDarkCloud

/// `zdc audit`: exactly what the server stores for this user, and what that means.
package enum AuditCommand {
  /// One section per line: `{"fields":[{"name","value"}],"meaning"?,"title"}`
  struct Section: Encodable, Sendable {
    var title: String
    var meaning: String?
    var fields: [AuditReport.Field]
  }

  package static func run(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    guard let userID = UserID(text: try await opened.localUserID()) else { throw ZDCError(.localUserNotFound) }
    let report = try await opened.users.serverAPI(for: userID).audit()
    for section in report.sections {
      let section = Section(title: section.title, meaning: meaning(section.title), fields: section.fields)
      try options.output.object(section)
      for line in lines(section) { options.output.line(line) }
    }
    options.output.line(neverHeld)
    try await opened.close()
  }

  private static func lines(_ section: Section) -> [String] {
    let title = ShownName.text(section.title)
    let width = min(section.fields.map(\.name.count).max() ?? 0, 32)
    let fields = section.fields.map { field in
      let space = String(repeating: " ", count: max(1, width - field.name.count + 2))
      return "  \(ShownName.text(field.name))\(space)\(ShownName.text(field.value))"
    }
    return [title + (section.meaning.map { ": \($0)" } ?? "")] + fields + [""]
  }

  /// Returns what a section of the report reveals to anyone with access to the server's disk.
  private static func meaning(_ title: String) -> String? {
    let title = title.lowercased()
    return meanings.first { title.contains($0.word) }?.meaning
  }

  private static let meanings: [(word: String, meaning: String)] = [
    ("account", "the account, when it was created, and its public keys"),
    ("chain", "the public history of the account's keys"),
    ("keyring", "the account's secret keys, sealed under the 24 words"),
    ("device", "the devices, and since when each is known"),
    ("session", "open sessions; the server stores only hashes of the tokens"),
    // In front of "zone" and "tree": these sections say who shares with whom.
    ("access list", "who may use each shared branch, with which permissions and keys; no names"),
    ("accepted", "the branches of other users that the account follows, and their owners"),
    ("mailbox", "messages that no device has taken over yet: sender, size and time; the text is sealed"),
    ("zone", "the shape of the tree: ids, parents, sizes, times; no names"),
    ("tree", "the shape of the tree: ids, parents, sizes, times; no names"),
    ("node", "ids, parents, versions and padded sizes; no names, no types"),
    ("blob", "sealed content by id and padded size"),
    ("content", "sealed content by id and padded size"),
    ("commit", "the signed history: which user changed which id, and when"),
  ]

  private static let neverHeld =
    "The server cannot read: names, file content, thumbnails, metadata, the 24 words, secret keys."
}
