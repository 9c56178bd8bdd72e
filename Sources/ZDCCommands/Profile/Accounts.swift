internal import ZeroDarkCloud

/// `zdc account …`
package enum Accounts {
  /// The result that `account create` and `account login` print with `--json`:
  /// `{"profile","server","userID","words"?}`.
  package struct Report: Encodable, Sendable {
    package var profile: String
    package var server: String
    package var userID: String
    /// Only from `create`, and only if the words are not written to a file.
    package var words: [String]?
  }

  /// Creates an account and its profile. After an interruption, the same call resumes with the same account.
  package static func create(
    _ options: ProfileOptions, invite: String?, newPassphrase: () throws -> String?
  ) async throws -> Report {
    let profile = try begin(options)
    let opened = try OpenProfile.prepare(options, profile: profile, newPassphrase: newPassphrase)
    // Written before anything is sent: after an interruption, the next call knows the server.
    try profile.write(options.paths())
    let (user, words) = try await opened.users.createAccount(invite: invite)
    try finish(options, profile, user)
    try await opened.close()
    return Report(profile: options.name, server: user.serverOrigin, userID: user.uuid, words: words)
  }

  /// Logs in to an existing account and makes it the profile's.
  ///
  /// - Parameter createsTree: Whether an account of another app gets a tree for files.
  package static func login(
    _ options: ProfileOptions, words: String, createsTree: Bool = false, newPassphrase: () throws -> String?
  ) async throws -> Report {
    if let report = try await renew(options, words: words) { return report }
    let profile = try begin(options)
    let opened = try OpenProfile.prepare(options, profile: profile, newPassphrase: newPassphrase)
    let user = try await explainingMissingTree(createsTree) {
      try await opened.users.login(words: [words], createsTree: createsTree)
    }
    try finish(options, profile, user)
    try await opened.close()
    return Report(profile: options.name, server: user.serverOrigin, userID: user.uuid)
  }

  /// Logs in without words: another device of the account gives it to this one.
  package static func link(
    _ options: ProfileOptions, createsTree: Bool, isConfirmed: Bool, newPassphrase: () throws -> String?
  ) async throws -> Report {
    let profile = try begin(options)
    let opened = try OpenProfile.prepare(options, profile: profile, newPassphrase: newPassphrase)
    let link = try await opened.users.startDeviceLink()
    try options.output.object(["code": link.code])
    options.output.line(link.code)
    options.output.note("now run zdc devices link CODE on a device of the account; waiting for it")
    let account = try await link.account()
    try options.output.object(["digits": account.digits])
    options.output.line(Devices.grouped(account.digits))
    if !isConfirmed { try confirmDigits() }
    let user = try await explainingMissingTree(createsTree) { try await account.add(createsTree: createsTree) }
    try finish(options, profile, user)
    try await opened.close()
    return Report(profile: options.name, server: user.serverOrigin, userID: user.uuid)
  }

  /// An account of another app has no tree for files. The framework cannot tell that from a server that withholds the
  /// newest part of the account, but the user can.
  private static func explainingMissingTree(
    _ createsTree: Bool, _ login: () async throws -> ZDCLocalUser
  ) async throws -> ZDCLocalUser {
    do { return try await login() } catch let error as ZDCSecurityError
      where error.code == .accountStateMissing && !createsTree
    {
      throw CommandError(
        .security, error.code.rawValue, "the account has no tree for files",
        hint:
          "if only another app used this account until now, add --create-tree; if not, the server withholds the tree")
    }
  }

  private static func confirmDigits() throws {
    guard try Terminal.readLine("Does the other device show the same digits? Type yes: ") == "yes" else {
      throw CommandError(
        .failure, "notConfirmed", "the account was not added",
        hint: "if the digits differ, another person answered with their account: start again")
    }
  }

  /// Logs in again with the words of the profile's account, for instance after another device changed them.
  ///
  /// - Returns: nil if the profile has no account yet.
  /// - Throws: ``CommandError`` with `profileInUse` if the words are of another account.
  private static func renew(_ options: ProfileOptions, words: String) async throws -> Report? {
    guard let profile = try Profile.read(options.paths()), let userID = profile.userID else { return nil }
    let opened = try OpenProfile.open(options)
    do { try await opened.users.renewLogin(of: userID, words: [words]) } catch let error as ZDCError
      where error.code == .otherAccount
    {
      throw profileInUse(options)
    }
    try await opened.close()
    return Report(profile: options.name, server: profile.server, userID: userID)
  }

  private static func profileInUse(_ options: ProfileOptions) -> CommandError {
    CommandError(
      .cannotCreate, "profileInUse", "profile \(options.name) already has an account",
      hint: "choose another one with --profile NAME")
  }

  private static func begin(_ options: ProfileOptions) throws -> Profile {
    let paths = try options.paths()
    let known = try Profile.read(paths)
    guard known?.userID == nil else {
      throw profileInUse(options)
    }
    guard let server = options.askedServer ?? known?.server else {
      throw CommandError(
        .usage, "noServer", "no server was given", hint: "add --server https://host, or set ZDC_SERVER")
    }
    return Profile(server: server, caFile: options.caFile.map(absolute) ?? known?.caFile)
  }

  private static func finish(_ options: ProfileOptions, _ profile: Profile, _ user: ZDCLocalUser) throws {
    var finished = profile
    finished.server = user.serverOrigin
    finished.userID = user.uuid
    try finished.write(options.paths())
  }

  private static func absolute(_ path: String) -> String { AbsolutePath.of(path) }

  /// Returns the 24 words of the profile's account.
  package static func words(_ options: ProfileOptions) async throws -> [String] {
    let opened = try OpenProfile.open(options)
    let words = try await opened.users.accessWords(for: opened.localUserID())
    try await opened.close()
    return words
  }

  /// One line of `account list`: `{"profile","server","userID"?}`; without userID the account is incomplete.
  package struct Listed: Encodable, Sendable, Hashable {
    package var profile: String
    package var server: String
    package var userID: String?
  }

  /// Returns all profiles of this machine's user. Does not open a database or ask for a passphrase.
  package static func list(environment: [String: String]) throws -> [Listed] {
    try ProfilePaths.all(environment: environment).compactMap { name in
      try Profile.read(ProfilePaths(name, environment: environment)).map {
        Listed(profile: name, server: $0.server, userID: $0.userID)
      }
    }
  }
}
