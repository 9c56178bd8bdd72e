extension ZDCSecurityError.Code {
  // MARK: Identity

  /// A user's identity chain breaks a rule of PROTOCOL 3.2, or has another link at a pinned place.
  public static let identityChainInvalid = Self(.identityChainInvalid)
  /// A user's identity chain is shorter than the pinned one, or has another root key than the words.
  public static let identityChainRollback = Self(.identityChainRollback)
  /// A chain or a link belongs to another user than the one asked for.
  public static let userIDMismatch = Self(.userIDMismatch)
  /// A link introduces a public key that is weak or not in its canonical form.
  public static let weakPublicKey = Self(.weakPublicKey)
  /// The server leads a handle to a user whose chain does not claim it, or to another one than the known user whose chain
  /// claims it. Do not share with the user whom it names.
  public static let handleBindingChanged = Self(.handleBindingChanged)
  /// A verified user's words were changed. Compare again, or accept the change with
  /// `acceptIdentityChange(_:)`, before you share with them.
  public static let identityChangedNeedsAcceptance = Self(.identityChangedNeedsAcceptance)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let logForkDetected = Self(.logForkDetected)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let logStale = Self(.logStale)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let logProofInvalid = Self(.logProofInvalid)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let witnessQuorumMissing = Self(.witnessQuorumMissing)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let keyTransparencyViolation = Self(.keyTransparencyViolation)

  // MARK: Account

  /// The account's keyring opens under none of the allowed versions.
  public static let keyringAuthFailed = Self(.keyringAuthFailed)
  /// The account's keyring opens but does not fit the identity chain.
  public static let keyringMismatch = Self(.keyringMismatch)
  /// The account's keyring is older than the pinned one.
  public static let keyringRollback = Self(.keyringRollback)
  /// The server lacks a part of an account that exists: its chain, its keyring or one of its trees. After a login to an
  /// account of another app, log in with `createsTree`, if its owner agrees.
  public static let accountStateMissing = Self(.accountStateMissing)
  /// The code of a new device is part of a web address or another text. Let the user scan the code inside the app: a code
  /// that someone sends asks for the whole account.
  public static let linkRequiresInAppScan = Self(.linkRequiresInAppScan)
  /// Another device has given the account new words. Log in again with the new words.
  public static let accessKeyChanged = Self(.accessKeyChanged)
  /// A key file would make guessing its pass-phrase cheap. Restore the key file from a backup.
  public static let kdfParametersTooWeak = Self(.kdfParametersTooWeak)

  // MARK: Form

  /// An object has a version that this framework does not know. Update the app.
  public static let unsupportedVersion = Self(.unsupportedVersion)
  /// Bytes are not the one encoding of an object that PROTOCOL allows.
  public static let nonCanonicalEncoding = Self(.nonCanonicalEncoding)
  /// An object exceeds a limit of PROTOCOL.
  public static let limitExceeded = Self(.limitExceeded)
  /// A signature does not verify.
  public static let signatureInvalid = Self(.signatureInvalid)

  // MARK: Writers and records

  /// A writer's identity chain has no key of the stated generation.
  public static let writerUnknown = Self(.writerUnknown)
  /// A writer lacks the permission for a change.
  public static let writerNotAuthorized = Self(.writerNotAuthorized)
  /// An object belongs to another zone, node or commit than stated.
  public static let recordBindingMismatch = Self(.recordBindingMismatch)
  /// A record or object has another hash than the commit names.
  public static let recordHashMismatch = Self(.recordHashMismatch)
  /// A record cannot be opened with its node's key.
  public static let recordAuthFailed = Self(.recordAuthFailed)
  /// A record or its content is not newer than the one that it replaces.
  public static let recordRollback = Self(.recordRollback)
  /// A record's name has another tag than the record states.
  public static let nameTagMismatch = Self(.nameTagMismatch)
  /// Two nodes with the same parent have the same name tag.
  public static let duplicateName = Self(.duplicateName)
  /// A key of an earlier generation is used.
  public static let staleKeyGeneration = Self(.staleKeyGeneration)
  /// A key does not fit the commitment that was published for it.
  public static let keyCommitmentMismatch = Self(.keyCommitmentMismatch)

  // MARK: Access lists and grants

  /// A grant is not the one that the access list names.
  public static let grantHashMismatch = Self(.grantHashMismatch)
  /// The access list names no grant for a member, or the grant is absent.
  public static let grantMissing = Self(.grantMissing)
  /// An access list's signature does not verify, or it belongs to another zone or commit.
  public static let aclSignatureInvalid = Self(.aclSignatureInvalid)
  /// The writer of an access list lacks the permission for its changes.
  public static let aclNotAuthorized = Self(.aclNotAuthorized)
  /// An access list changes or removes the zone's owner.
  public static let aclOwnerImmutable = Self(.aclOwnerImmutable)
  /// An access list does not follow the one in force.
  public static let aclRollback = Self(.aclRollback)

  // MARK: Zones

  /// A commit does not follow the one before it.
  public static let commitChainBroken = Self(.commitChainBroken)
  /// The server shows an older history of a zone than it did before. The zone is frozen until
  /// `acceptServerState(ofZone:localUserID:)`.
  ///
  /// If `user` is set, a message of that member names a commit that the server does not show. Nothing is frozen then,
  /// because the member may be wrong: ask them.
  public static let zoneRollback = Self(.zoneRollback)
  /// The server shows another history of a zone than it did before. The zone is frozen until
  /// `acceptServerState(ofZone:localUserID:)`.
  ///
  /// A message of a member may also name a commit that this device's history does not contain. `user` is that member,
  /// and nothing is frozen, because the member may be wrong: ask them.
  public static let zoneForkDetected = Self(.zoneForkDetected)
  /// The server has lost commits of this device that it had accepted. The zone is frozen until
  /// `acceptServerState(ofZone:localUserID:)`.
  public static let ownCommitMissing = Self(.ownCommitMissing)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let checkpointMismatch = Self(.checkpointMismatch)
  /// A zone does not begin with the branch that was split off for it.
  public static let splitMismatch = Self(.splitMismatch)
  /// A move or delete states a wrong number of nodes.
  public static let moveMismatch = Self(.moveMismatch)
  /// A change would make a node its own ancestor, or a second root.
  public static let treeCycle = Self(.treeCycle)
  /// The server lacks an object that the zone's log names.
  public static let objectMissing = Self(.objectMissing)
  /// A request concerns more zones than PROTOCOL allows.
  public static let tooManyZones = Self(.tooManyZones)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let zoneExists = Self(.zoneExists)
  /// A member other than the owner splits a zone.
  public static let splitNeedsOwner = Self(.splitNeedsOwner)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let nestedZoneNotYours = Self(.nestedZoneNotYours)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let deletedRemotely = Self(.deletedRemotely)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let unsupportedShare = Self(.unsupportedShare)

  // MARK: Content

  /// Content has another hash than its record names. Download it again.
  public static let contentHashMismatch = Self(.contentHashMismatch)
  /// A chunk of content cannot be opened.
  public static let chunkAuthFailed = Self(.chunkAuthFailed)
  /// Content is shorter than its record or header states.
  public static let contentTruncated = Self(.contentTruncated)
  /// Content is longer than its record or header states.
  public static let contentTrailingData = Self(.contentTrailingData)
  /// The header of content is invalid, or content of another kind is asked for.
  public static let contentHeaderInvalid = Self(.contentHeaderInvalid)
  /// Sealed bytes do not fit the commitment to their key.
  public static let commitmentMismatch = Self(.commitmentMismatch)
  /// A record names content of another node or an upload of another user.
  public static let blobNotYours = Self(.blobNotYours)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let blobGone = Self(.blobGone)

  // MARK: Messages and invitations

  /// A message, or the answer to a device link, does not open with the key that it must be sealed to, or a message's
  /// signature is not its sender's. It stays out of the inbox.
  public static let messageAuthFailed = Self(.messageAuthFailed)
  /// A message was made for another user, inbox or key than the one that it was delivered to.
  public static let messageWrongRecipient = Self(.messageWrongRecipient)
  /// A message that a user has sent is missing below a later one of the same device. Recorded as a security event with
  /// the user's ID; ask the user what they have sent.
  public static let messageGap = Self(.messageGap)
  /// A grafted branch is not shared with the user, or the server denies it. The engine asks again after pauses.
  ///
  /// `ZDCSyncManager.unreadableNodes(localUserID:limit:)` lists the branch.
  public static let inviteNotAuthorized = Self(.inviteNotAuthorized)
  /// An invitation names a commit that the log of its branch does not contain yet. The branch is not shown; later pulls
  /// try again.
  public static let inviteHeadMismatch = Self(.inviteHeadMismatch)
  /// An access list wraps a key for an old key of a member. The framework fetches the member's newest key and sends the
  /// change again.
  public static let recipientKeyStale = Self(.recipientKeyStale)

  // MARK: Programs

  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let sessionOriginMismatch = Self(.sessionOriginMismatch)
  // Reserved by PROTOCOL 3.15; nothing throws it.
  package static let unsafeExportName = Self(.unsafeExportName)
}

extension ZDCSecurityError.Code {
  /// What failed and, if this device can do something about it, what to do.
  public var explanation: String {
    switch name {
    case .identityChainInvalid: "the identity chain is invalid"
    case .identityChainRollback: "the identity chain is older than the pinned one"
    case .userIDMismatch: "the identity chain belongs to another user"
    case .weakPublicKey: "a public key is weak"
    case .handleBindingChanged:
      "the server says that a handle is another user's than the one who signed for it; do not share by this handle"
    case .identityChangedNeedsAcceptance: "an identity has changed and must be accepted"
    case .logForkDetected: "the transparency log has forked"
    case .logStale: "the transparency log is out of date"
    case .logProofInvalid: "a proof of the transparency log is invalid"
    case .witnessQuorumMissing: "too few witnesses have signed the transparency log"
    case .keyTransparencyViolation: "the transparency log contradicts a key"
    case .keyringAuthFailed: "the keyring cannot be opened"
    case .keyringMismatch: "the keyring does not fit the identity chain"
    case .keyringRollback: "the keyring is older than the pinned one"
    case .accountStateMissing: "the server lacks a part of the account"
    case .linkRequiresInAppScan: "a device can be linked only by a scan in the app"
    case .accessKeyChanged: "the account has new words; log in again with them"
    case .kdfParametersTooWeak: "the key file makes guessing its pass-phrase cheap; restore it from a backup"
    case .unsupportedVersion: "an object has an unknown version; update the app"
    case .nonCanonicalEncoding: "an object is not encoded as the protocol demands"
    case .limitExceeded: "an object exceeds a limit of the protocol"
    case .signatureInvalid: "a signature is invalid"
    case .writerUnknown: "the writer is unknown"
    case .writerNotAuthorized: "the writer lacks the permission"
    case .recordBindingMismatch: "an object belongs somewhere else"
    case .recordHashMismatch: "a record has another hash than its commit names"
    case .recordAuthFailed: "a record cannot be opened"
    case .recordRollback: "a record is older than the one that it replaces"
    case .nameTagMismatch: "a name does not fit its tag"
    case .duplicateName: "two nodes have the same name"
    case .staleKeyGeneration: "a key of an earlier generation is used"
    case .keyCommitmentMismatch: "a key does not fit its commitment"
    case .grantHashMismatch: "a grant is not the one that the access list names"
    case .grantMissing: "a grant is missing"
    case .aclSignatureInvalid: "the signature of an access list is invalid"
    case .aclNotAuthorized: "the writer of an access list lacks the permission"
    case .aclOwnerImmutable: "an access list changes the owner"
    case .aclRollback: "an access list does not follow the one in force"
    case .commitChainBroken: "a commit does not follow the one before it"
    case .zoneRollback: "the server shows an older history than before; ask its operator whether it was restored"
    case .zoneForkDetected: "the server shows another history than before; ask its operator whether it was restored"
    case .ownCommitMissing: "the server has lost what it had accepted; ask its operator whether it was restored"
    case .checkpointMismatch: "a checkpoint does not fit the history"
    case .splitMismatch: "a split zone does not fit its origin"
    case .moveMismatch: "a move or delete states a wrong number of nodes"
    case .treeCycle: "a node would be its own ancestor"
    case .objectMissing: "the server lacks an object that its log names"
    case .tooManyZones: "a request concerns too many zones"
    case .zoneExists: "the zone exists already"
    case .splitNeedsOwner: "only the owner may split a zone"
    case .nestedZoneNotYours: "a nested zone belongs to another user"
    case .deletedRemotely: "another device has deleted the node"
    case .unsupportedShare: "this kind of share is not supported"
    case .contentHashMismatch: "content has another hash than its record names"
    case .chunkAuthFailed: "a part of content cannot be opened"
    case .contentTruncated: "content is shorter than stated"
    case .contentTrailingData: "content is longer than stated"
    case .contentHeaderInvalid: "the header of content is invalid"
    case .commitmentMismatch: "sealed bytes do not fit their key"
    case .blobNotYours: "content belongs to another node or user"
    case .blobGone: "the server no longer has the content"
    case .messageAuthFailed: "a message cannot be opened"
    case .messageWrongRecipient: "a message is for another recipient"
    case .messageGap: "a message is missing"
    case .inviteNotAuthorized: "the server has no branch here that its owner shares with this user"
    case .inviteHeadMismatch: "an invitation does not fit the history of its zone"
    case .recipientKeyStale: "a key of the recipient is out of date"
    case .sessionOriginMismatch: "a session belongs to another server"
    case .unsafeExportName: "a name cannot be written to the file system"
    }
  }
}
