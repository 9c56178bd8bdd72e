/// Received data that an honest server and honest writers would not have produced (PROTOCOL 3.15).
///
/// The error contains only IDs, never a name, a key or content, so it may be logged as is.
public struct ZDCSecurityError: Error, Hashable, Sendable {
  public enum Code: String, Sendable, CaseIterable, Codable {
    case identityChainInvalid, identityChainRollback, userIDMismatch, weakPublicKey, handleBindingChanged
    case identityChangedNeedsAcceptance, logForkDetected, logStale, logProofInvalid, witnessQuorumMissing
    case keyTransparencyViolation, keyringAuthFailed, keyringMismatch, keyringRollback, accountStateMissing
    case linkRequiresInAppScan, kdfParametersTooWeak, unsupportedVersion, nonCanonicalEncoding, limitExceeded
    case signatureInvalid, writerUnknown, writerNotAuthorized, recordBindingMismatch, recordHashMismatch
    case recordAuthFailed, recordRollback, nameTagMismatch, duplicateName, staleKeyGeneration
    case keyCommitmentMismatch, grantHashMismatch, grantMissing, aclSignatureInvalid, aclNotAuthorized
    case aclOwnerImmutable, aclRollback, commitChainBroken, zoneRollback, zoneForkDetected, ownCommitMissing
    case checkpointMismatch, splitMismatch, moveMismatch, treeCycle, objectMissing, contentHashMismatch
    case chunkAuthFailed, contentTruncated, contentTrailingData, contentHeaderInvalid, commitmentMismatch
    case blobNotYours, messageAuthFailed, messageWrongRecipient, messageGap, inviteNotAuthorized
    case inviteHeadMismatch, sessionOriginMismatch, unsafeExportName, tooManyZones, nestedZoneNotYours
    case splitNeedsOwner, blobGone, zoneExists, recipientKeyStale, deletedRemotely, accessKeyChanged
    case unsupportedShare
  }

  public let code: Code
  public var zone: ZoneID?
  public var node: NodeID?
  public var user: UserID?

  public init(_ code: Code, zone: ZoneID? = nil, node: NodeID? = nil, user: UserID? = nil) {
    self.code = code
    self.zone = zone
    self.node = node
    self.user = user
  }

  /// Returns the same error with IDs that a caller knows. IDs that are already set are kept.
  public func with(zone: ZoneID? = nil, node: NodeID? = nil, user: UserID? = nil) -> ZDCSecurityError {
    ZDCSecurityError(code, zone: self.zone ?? zone, node: self.node ?? node, user: self.user ?? user)
  }
}

extension ZDCSecurityError: CustomStringConvertible {
  public var description: String {
    var text = code.rawValue
    if let zone { text += " zone=\(zone.tree.text)/\(zone.root.text)" }
    if let node { text += " node=\(node.text)" }
    if let user { text += " user=\(user.text)" }
    return text
  }
}

/// Throws a security error unless the condition holds. A call reads as the rule that it checks.
@inlinable
package func require(_ condition: Bool, _ code: ZDCSecurityError.Code, node: NodeID? = nil) throws(ZDCSecurityError) {
  guard condition else { throw ZDCSecurityError(code, node: node) }
}
