internal import ZeroDarkCloud

/// `zdc user …`
package enum Users {
  /// One user per line: `{"code"?,"handle"?,"isBlocked","isLocal","name"?,"safetyNumber"?,"state","userID"}`
  struct Shown: Encodable, Sendable {
    var userID: String
    var state: String
    var isLocal: Bool
    var isBlocked: Bool
    /// The name that the user has chosen.
    var name: String?
    var handle: String?
    /// With another user.
    var safetyNumber: String?
    /// The own account's.
    var code: String?

    init(_ user: ZDCUser) {
      (userID, isLocal, isBlocked) = (user.uuid, user.isLocal, user.isBlocked)
      (name, handle) = (user.name, user.handle)
      state =
        switch user.identity {
        case .seen: "seen"
        case .verified: "verified"
        case .changed: "changed"
        case .closed: "closed"
        }
    }

    var line: String {
      let shown = (handle.map { "  @\($0)" } ?? "") + (name.map { "  \(ShownName.text($0))" } ?? "")
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

  /// Lists the users whose handles begin with a text.
  package static func find(_ options: ProfileOptions, beginning: String) async throws {
    let opened = try OpenProfile.open(options)
    let found = try await opened.people.findUsers(handle: beginning, for: try await opened.localUserID())
    for user in found.map(Shown.init) {
      try options.output.object(user)
      options.output.line(user.line)
    }
    if found.isEmpty { options.output.note("no handle begins with \(ShownName.text(beginning))") }
    try await opened.close()
  }

  /// Gives the own account a handle, or gives it up.
  package static func setHandle(_ options: ProfileOptions, _ handle: String?) async throws {
    let opened = try OpenProfile.open(options)
    let own = try await opened.localUserID()
    try await opened.users.setHandle(handle, for: own)
    try await finish(opened, try await opened.people.fetchUser(id: own, for: own))
  }

  /// Shows a user, or without `userID` the own account with the text that others scan.
  package static func show(_ options: ProfileOptions, userID: String?) async throws {
    let opened = try OpenProfile.open(options)
    let own = try await opened.localUserID()
    let userID = try await opened.userID(typed: userID ?? own, for: own)
    var shown = Shown(try await opened.people.fetchUser(id: userID, for: own))
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
    let userID = try await opened.userID(typed: userID, for: own)
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
    let userID = try await opened.userID(typed: userID, for: try await opened.localUserID())
    try await finish(opened, try await opened.people.acceptIdentityChange(userID))
  }

  package static func setBlocked(_ options: ProfileOptions, userID: String, _ isBlocked: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let people = opened.people
    let userID = try await opened.userID(typed: userID, for: try await opened.localUserID())
    try await finish(opened, isBlocked ? try await people.block(userID) : try await people.unblock(userID))
  }

  private static func finish(_ opened: OpenProfile, _ user: ZDCUser) async throws {
    try opened.output.object(Shown(user))
    opened.output.line(Shown(user).line)
    try await opened.close()
  }
}

extension OpenProfile {
  /// Returns the ID of a user whom a person named by it, or by a handle with an `@`.
  func userID(typed text: String, for own: String) async throws -> String {
    guard text.hasPrefix("@") else { return text }
    return try await people.fetchUser(handle: text, for: own).uuid
  }
}
