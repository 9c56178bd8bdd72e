/// Received data that an honest server and honest writers would not have produced (PROTOCOL 3.15).
///
/// The data was not used. Data that stays invalid means a damaged or dishonest server: do not trust it, keep a copy of
/// your data and keep your words safe.
///
/// ```swift
/// do { try await zdc.syncManager?.syncUntilIdle(localUserID: user.uuid) }
/// catch let error as ZDCSecurityError where error.code == .zoneRollback { askWhetherTheServerWasRestored() }
/// ```
///
/// The error contains only IDs, never a name, a key or content, so it may be logged as is.
public struct ZDCSecurityError: Error, Hashable, Sendable {
  /// The rule that the data broke.
  public let code: Code
  /// The zone that the data belongs to, if known.
  public var zone: ZDCZoneID?
  /// The node that the data belongs to, if known.
  public var node: ZDCNodeID?
  /// The user who wrote the data or whom it describes, if known.
  public var user: ZDCUserID?
  /// The number of the user's device that sent the messages, for `messageGap`.
  public var device: UInt64?
  /// The lowest and the highest number of a missing message of the device, for `messageGap`. Numbers in between may have
  /// arrived. Nil if the user has more devices than are counted.
  public var missing: ClosedRange<UInt64>?

  /// Creates an error, for previews and tests.
  public init(_ code: Code, zone: ZDCZoneID? = nil, node: ZDCNodeID? = nil, user: ZDCUserID? = nil) {
    self.code = code
    self.zone = zone
    self.node = node
    self.user = user
  }

  /// Returns the same error with IDs that a caller knows. IDs that are already set are kept.
  package func with(zone: ZoneID? = nil, node: NodeID? = nil, user: UserID? = nil) -> ZDCSecurityError {
    var error = self
    (error.zone, error.node, error.user) = (self.zone ?? zone, self.node ?? node, self.user ?? user)
    return error
  }
}

extension ZDCSecurityError {
  /// The broken rule. Later versions may add codes, so a `switch` needs a `default`.
  public struct Code: ErrorCode, Hashable, Sendable, Codable, CustomStringConvertible {
    package enum Name: String, CaseIterable, Sendable {
      case identityChainInvalid, identityChainRollback, userIDMismatch, weakPublicKey, handleBindingChanged
      case identityChangedNeedsAcceptance, logForkDetected, logStale, logProofInvalid, witnessQuorumMissing
      case keyTransparencyViolation, keyringAuthFailed, keyringMismatch, keyringRollback, accountStateMissing
      case linkRequiresInAppScan, accessKeyChanged, kdfParametersTooWeak, unsupportedVersion
      case nonCanonicalEncoding, limitExceeded, signatureInvalid, writerUnknown, writerNotAuthorized
      case recordBindingMismatch, recordHashMismatch, recordAuthFailed, recordRollback, nameTagMismatch
      case duplicateName, staleKeyGeneration, keyCommitmentMismatch, grantHashMismatch, grantMissing
      case aclSignatureInvalid, aclNotAuthorized, aclOwnerImmutable, aclRollback, commitChainBroken
      case zoneRollback, zoneForkDetected, ownCommitMissing, checkpointMismatch, splitMismatch, moveMismatch
      case treeCycle, objectMissing, tooManyZones, zoneExists, splitNeedsOwner, nestedZoneNotYours
      case deletedRemotely, unsupportedShare, contentHashMismatch, chunkAuthFailed, contentTruncated
      case contentTrailingData, contentHeaderInvalid, commitmentMismatch, blobNotYours, blobGone
      case messageAuthFailed, messageWrongRecipient, messageGap, inviteNotAuthorized, inviteHeadMismatch
      case recipientKeyStale, sessionOriginMismatch, unsafeExportName
    }

    package let name: Name

    package init(_ name: Name) { self.name = name }

    /// Decodes a name of PROTOCOL 3.15, and throws if this version does not know it.
    public init(from decoder: any Decoder) throws { self = try Self.decode(from: decoder) }

    /// Encodes the name.
    public func encode(to encoder: any Encoder) throws { try encodeName(to: encoder) }

    /// The name in PROTOCOL 3.15, which is stable.
    public var description: String { name.rawValue }
  }
}

extension ZDCSecurityError: CustomStringConvertible {
  /// What failed, the code and the IDs. It may be logged.
  public var description: String {
    var text = "\(code.explanation) (\(code)"
    if let zone { text += " zone=\(zone.tree.text)/\(zone.root.text)" }
    if let node { text += " node=\(node.text)" }
    if let user { text += " user=\(user.text)" }
    if let device { text += " device=\(device)" }
    if let missing { text += " missing=\(missing.lowerBound)-\(missing.upperBound)" }
    return text + ")"
  }
}

/// Throws a security error unless the condition holds. A call reads as the rule that it checks.
@inlinable
package func require(_ condition: Bool, _ code: ZDCSecurityError.Code, node: ZDCNodeID? = nil) throws(ZDCSecurityError)
{
  guard condition else { throw ZDCSecurityError(code, node: node) }
}
