internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// The result of ``ZDCLocalUserManager/rotateKeys(for:areCompromised:)``.
///
/// ```swift
/// let rotation = try await session.localUserManager.rotateKeys(for: user.uuid, areCompromised: true)
/// print(rotation.revokedDevices, "devices were logged out")
/// ```
public struct ZDCKeyRotation: Sendable, Hashable {
  /// The generation of the account's new sign and decrypt keys. The first one of an account is 1.
  public let generation: UInt32
  /// The number of other devices whose sessions were ended. Always zero unless the old keys are compromised.
  public let revokedDevices: Int
  /// The number of zones in which a signed operation must still retire the old keys. The next sync of any device of the
  /// account sends it.
  public let queuedRetirements: Int
}

// Changes of the account's own identity (PROTOCOL 3.4).

extension ZDCLocalUserManager {
  /// Replaces the account's sign and decrypt keys.
  ///
  /// The old keys stay in the account's keyring, so everything remains readable. The account's other devices take over
  /// the new keys when they connect. Changes that were signed with an old key and are still queued are signed again.
  ///
  /// The new keys are stored on this device, sealed, before anything is sent. If the app is killed or the network fails
  /// at any point, call this method again: it resumes. If the server accepted the change, an engine that starts in
  /// between adopts it.
  ///
  /// ```swift
  /// let rotation = try await session.localUserManager.rotateKeys(for: user.uuid, areCompromised: true)
  /// print("keys of generation \(rotation.generation), \(rotation.revokedDevices) devices logged out")
  /// ```
  ///
  /// - Parameters:
  ///   - localUserID: The ID of the local user.
  ///   - areCompromised: Whether others may have the old keys. Other users then distrust them, the sessions of the
  ///     account's other devices end, and an operation that retires the old keys is queued in each zone of the
  ///     account's trees on this device, and of other users' trees in which the account is a member. Each of these
  ///     zones also gets a fresh key, as after the removal of a member.
  ///     A device that has the account's words can log in again: change them too, with ``changeAccessWords(for:)``.
  /// - Throws: ``ZDCError`` with `localUserNotFound`; `ZDCServerError` with `accountClosed`; `ZDCSecurityError` with
  ///   `accessKeyChanged` if another device has changed the words, or if the server's answers do not verify;
  ///   `ZDCTransportError`.
  @discardableResult
  public func rotateKeys(for localUserID: String, areCompromised: Bool = false) async throws -> ZDCKeyRotation {
    let userID = try await change(localUserID, .keys(areCompromised: areCompromised))
    let keys = try await keys(for: userID)
    let revoked = areCompromised ? try await revokeOtherDevices(for: localUserID) : 0
    let queued = try await database.asyncRead { transaction in
      guard keys.hasCompromisedKeys, let row = try transaction.localUsers.user(userID) else { return 0 }
      return keys.retirements(in: try transaction.zones.zones(localUser: row.id)).count
    }
    return ZDCKeyRotation(generation: keys.signGen, revokedDevices: revoked, queuedRetirements: queued)
  }

  /// Gives the account another access key, and returns its 24 words. The old words stop working.
  ///
  /// All other devices are logged out. They keep their data and their queued changes; log in on each with
  /// ``renewLogin(of:words:)``.
  ///
  /// The new access key is stored on this device, sealed, before anything is sent. If the app is killed or the network
  /// fails at any point, call this method again: it resumes with the same words. ``accessWords(for:)`` returns the words
  /// that this device knows to be in force.
  ///
  /// ```swift
  /// let words = try await session.localUserManager.changeAccessWords(for: user.uuid)
  /// show(words)  // once, for their owner to write down
  /// ```
  ///
  /// - Parameter localUserID: The ID of the local user.
  /// - Returns: The new words. Show them to their owner once, and do not store them.
  /// - Throws: The errors of ``rotateKeys(for:areCompromised:)``.
  public func changeAccessWords(for localUserID: String) async throws -> [String] {
    let userID = try await change(localUserID, .accessKey)
    return try await keys(for: userID).accessKey.words
  }

  /// Closes the account for good. Nothing can be written to its trees any more.
  ///
  /// The account can still be read, and logged in to, for 30 days. Then the server removes all of its data except the
  /// public identity chain, which shows other users that the account is closed. Queued changes stay on this device and
  /// are never sent.
  ///
  /// ```swift
  /// try await session.localUserManager.closeAccount(user.uuid)
  /// try await session.localUserManager.delete(user.uuid, force: true)  // also from this device
  /// ```
  ///
  /// - Parameter localUserID: The ID of the local user.
  /// - Throws: The errors of ``rotateKeys(for:areCompromised:)``.
  public func closeAccount(_ localUserID: String) async throws {
    _ = try await change(localUserID, .closing)
  }

  /// Gives the account a handle, by which other users of the server find it: see
  /// ``ZDCUserManager/findUsers(handle:for:)``.
  ///
  /// The handle is public: it is a signed claim in the account's identity chain, which the server stores too. An account
  /// has one at most. The previous one stays reserved for the account for 30 days.
  ///
  /// ```swift
  /// do {
  ///   try await session.localUserManager.setHandle(typed, for: user.uuid)
  /// } catch let error as ZDCServerError where error.code == .handleTaken {
  ///   show(["Another user has this handle. Choose another one."])
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - handle: 3 to 32 letters (a to z), digits and single separators (`.`, `_`, `-`), beginning with a letter. A
  ///     leading `@` is ignored, uppercase letters become lowercase. nil gives the handle up.
  ///   - localUserID: The ID of the local user.
  /// - Throws: ``ZDCError`` with `invalidParameter` for a text that is no handle; `ZDCServerError` with `handleTaken`; the
  ///   errors of ``rotateKeys(for:areCompromised:)``.
  public func setHandle(_ handle: String?, for localUserID: String) async throws {
    let name = handle.flatMap(Handle.init(typed:))
    guard handle == nil || name != nil else {
      throw ZDCError(
        .invalidParameter, detail: "a handle has 3 to 32 letters (a to z), digits, and single separators (. _ -)")
    }
    guard try await keys(for: try Self.userID(localUserID)).identity.handle != name else { return }
    _ = try await change(localUserID, .handle(name))
  }

  private func change(_ localUserID: String, _ change: IdentityChange) async throws -> UserID {
    let userID = try Self.userID(localUserID)
    let api = try await serverAPI(for: userID)
    let run = IdentityChangeRun(database: database, api: api, user: userID, now: now)
    try await gate.run {
      _ = try await translating { try await run.run(change) }
      try await renew(userID)
    }
    return userID
  }
}
