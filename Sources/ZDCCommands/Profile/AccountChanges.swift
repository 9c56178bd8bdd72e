internal import ZeroDarkCloud

/// `zdc account rotate-keys`, `rotate-words` and `close`.
package enum AccountChanges {
  /// `{"generation","queuedRetirements","revokedDevices"}`
  struct Rotation: Encodable, Sendable {
    var generation: UInt32
    var queuedRetirements: Int
    var revokedDevices: Int
  }

  package static func rotateKeys(_ options: ProfileOptions, areCompromised: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let rotation = try await opened.users.rotateKeys(for: opened.localUserID(), areCompromised: areCompromised)
    let report = Rotation(
      generation: rotation.generation, queuedRetirements: rotation.queuedRetirements,
      revokedDevices: rotation.revokedDevices)
    try options.output.object(report)
    options.output.line("the account has keys of generation \(report.generation)")
    if areCompromised { tell(report, options.output) }
    try await opened.close()
  }

  private static func tell(_ report: Rotation, _ output: Output) {
    output.line("other devices logged out: \(report.revokedDevices)")
    output.line("trees in which the old keys are still to be retired: \(report.queuedRetirements)")
    output.note("next: zdc sync, which retires them; then zdc account rotate-words, if others may have the words")
  }

  /// Returns the new words.
  package static func rotateWords(_ options: ProfileOptions) async throws -> [String] {
    let opened = try OpenProfile.open(options)
    let words = try await opened.users.changeAccessWords(for: opened.localUserID())
    try await opened.close()
    return words
  }

  /// Closes the account, after its user ID was typed or `isConfirmed`.
  package static func close(_ options: ProfileOptions, isConfirmed: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    if !isConfirmed { try confirm(user) }
    try await opened.users.closeAccount(user)
    try options.output.object(["userID": user])
    options.output.line("account \(user) is closed")
    options.output.note("it can be read for 30 days: zdc get home:/ copies everything")
    try await opened.close()
  }

  private static func confirm(_ user: String) throws {
    let prefix = String(user.prefix(8))
    let typed = try Terminal.readLine("Closing the account cannot be undone. Type \(prefix) to confirm: ")
    guard typed == prefix else {
      throw CommandError(
        .usage, "notConfirmed", "the account was not closed", hint: "type the characters shown, or add --yes")
    }
  }
}
