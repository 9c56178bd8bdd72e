internal import ZeroDarkCloud

/// `zdc user …`
package enum Users {
  /// One user per line: `{"code"?,"isBlocked","isLocal","name"?,"safetyNumber"?,"state","userID"}`
  struct Shown: Encodable, Sendable {
    var userID: String
    var state: String
    var isLocal: Bool
    var isBlocked: Bool
    /// The name that the user has chosen.
    var name: String?
    /// With another user.
    var safetyNumber: String?
    /// The own account's.
    var code: String?

    init(_ user: ZDCUser) {
      (userID, isLocal, isBlocked, name) = (user.uuid, user.isLocal, user.isBlocked, user.name)
      state =
        switch user.identity {
        case .seen: "seen"
        case .verified: "verified"
        case .changed: "changed"
        case .closed: "closed"
        }
    }

    var line: String {
      let shown = name.map { "  \(ShownName.text($0))" } ?? ""
      return "\(userID)  \(state)\(isBlocked ? ", blocked" : "")\(shown)\(isLocal ? "  (this account)" : "")"
    }
  }

  package static func list(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    for user in try await opened.people.allUsers() {
      try options.output.object(Shown(user))
      options.output.line(Shown(user).line)
    }
    try await opened.close()
  }

  /// Shows a user, or without `userID` the own account with the text that others scan.
  package static func show(_ options: ProfileOptions, userID: String?) async throws {
    let opened = try OpenProfile.open(options)
    let own = try await opened.localUserID()
    var shown = Shown(try await opened.people.fetchUser(id: userID ?? own, for: own))
    if shown.isLocal {
      shown.code = try await opened.people.identityCode(of: own)
    } else {
      shown.safetyNumber = try opened.people.safetyNumber(of: own, and: shown.userID).description
    }
    try options.output.object(shown)
    options.output.line(shown.line)
    if let code = shown.code { options.output.line("code           \(code)") }
    if let number = shown.safetyNumber { options.output.line("safety number  \(number)") }
    try await opened.close()
  }

  /// Verifies a user: by a scanned text, or after the safety number was compared.
  package static func verify(
    _ options: ProfileOptions, userID: String, scanned: String?, isConfirmed: Bool
  ) async throws {
    let opened = try OpenProfile.open(options)
    let own = try await opened.localUserID()
    if let scanned {
      let user = try await opened.people.verify(scanned: scanned, of: userID, for: own)
      return try await finish(opened, user)
    }
    let user = try await opened.people.fetchUser(id: userID, for: own)
    guard !user.isLocal else {
      throw CommandError(.usage, "ownAccount", "this is the profile's own account")
    }
    if !isConfirmed { try confirm(try opened.people.safetyNumber(of: own, and: userID), options.output) }
    try await finish(opened, try await opened.people.verify(userID))
  }

  private static func confirm(_ number: ZDCSafetyNumber, _ output: Output) throws {
    Terminal.writeError("\(number)\n")
    guard try Terminal.readLine("Does the other side show the same digits? Type yes: ") == "yes" else {
      throw CommandError(
        .failure, "notConfirmed", "the user was not verified",
        hint: "if the digits differ, the server shows a false identity: do not share with this user")
    }
  }

  package static func accept(_ options: ProfileOptions, userID: String) async throws {
    let opened = try OpenProfile.open(options)
    try await finish(opened, try await opened.people.acceptIdentityChange(userID))
  }

  package static func setBlocked(_ options: ProfileOptions, userID: String, _ isBlocked: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let people = opened.people
    try await finish(opened, isBlocked ? try await people.block(userID) : try await people.unblock(userID))
  }

  private static func finish(_ opened: OpenProfile, _ user: ZDCUser) async throws {
    try opened.output.object(Shown(user))
    opened.output.line(Shown(user).line)
    try await opened.close()
  }
}
