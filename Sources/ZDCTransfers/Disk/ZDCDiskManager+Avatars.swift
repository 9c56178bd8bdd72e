internal import ZDCAccounts
public import ZDCClientStore

// Avatars of users: one for each identity and one without. They come from the app, because no server stores them yet.

extension ZDCDiskManager {
  /// Stores a user's avatar, or records that the user has none.
  ///
  /// ```swift
  /// let picture = ZDCDiskImport(cleartextData: jpeg)
  /// picture.eTag = "v7"  // the app's version of the picture
  /// try session.diskManager.importUserAvatar(picture, for: ZDCUser(user))
  /// ```
  ///
  /// - Parameters:
  ///   - diskImport: the picture, or a placeholder if there is none.
  ///   - user: the user whose avatar it is.
  ///   - identityID: the app's name for one of the user's identities, which is stored sealed; nil for the main avatar.
  /// - Returns: nil for a placeholder.
  /// - Throws: ``ZDCError`` with `diskFull` or `fileFailure`; the previous avatar then remains.
  @discardableResult
  public func importUserAvatar(
    _ diskImport: ZDCDiskImport, for user: ZDCUser, identityID: String? = nil
  ) throws -> ZDCCryptoFile? {
    try take(diskImport, .avatar(user.uuid, identityID))
  }

  /// Returns whether the user's main avatar is stored.
  ///
  /// ```swift
  /// if !session.diskManager.hasUserAvatar(bobsUserID) { refreshCell() }
  /// ```
  public func hasUserAvatar(_ userID: String) -> Bool { has(.avatar(userID, nil)) }

  /// Returns whether the avatar of one of the user's identities is stored.
  public func hasUserAvatar(_ userID: String, forIdentityID identityID: String) -> Bool {
    has(.avatar(userID, identityID))
  }

  /// Returns the identities that have a stored avatar or a placeholder.
  public func storedIdentityIDs(_ userID: String) -> [String] {
    let now = nowMs
    let rows = lookUp { try $0.diskFiles.rows(.userAvatar, owner: userID) } ?? []
    return rows.filter { !$0.isExpired(nowMs: now) }.compactMap(\.owner.identity).sorted()
  }

  /// Returns the user's main avatar or its placeholder; nil if neither is stored.
  ///
  /// ```swift
  /// guard let file = session.diskManager.userAvatar(bob)?.cryptoFile else { return }
  /// let picture = try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
  /// ```
  public func userAvatar(_ user: ZDCUser) -> ZDCDiskExport? { export(.avatar(user.uuid, nil)) }

  /// Returns the avatar of one of the user's identities, or its placeholder; nil if neither is stored.
  public func userAvatar(_ user: ZDCUser, forIdentityID identityID: String) -> ZDCDiskExport? {
    export(.avatar(user.uuid, identityID))
  }

  /// Deletes all avatars of the user.
  ///
  /// ```swift
  /// try session.diskManager.deleteUserAvatar(bobsUserID)
  /// ```
  ///
  /// - Throws: The error of the database.
  public func deleteUserAvatar(_ userID: String) throws {
    try database.joinedWrite { transaction in
      let writer = DiskWriter(transaction)
      for row in try transaction.diskFiles.rows(.userAvatar, owner: userID) { try writer.delete(row.owner) }
    }
  }

  /// Deletes the avatar of one of the user's identities. Does nothing if none is stored.
  ///
  /// - Throws: The error of the database.
  public func deleteUserAvatar(_ userID: String, forIdentityID identityID: String) throws {
    try delete([.avatar(userID, identityID)])
  }

  /// Moves a stored avatar out of the cache, or into it.
  ///
  /// ```swift
  /// try session.diskManager.makeUserAvatarPersistent(true, forUserID: bobsUserID)
  /// ```
  ///
  /// - Returns: false if there is no entry.
  /// - Throws: The error of the database.
  @discardableResult
  public func makeUserAvatarPersistent(
    _ isPersistent: Bool, forUserID userID: String, identityID: String? = nil
  ) throws -> Bool {
    try makePersistent(isPersistent, .avatar(userID, identityID))
  }
}
