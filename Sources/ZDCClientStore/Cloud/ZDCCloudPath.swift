package import ZDCCrypto
internal import ZDCProtocol

/// The place of a shared node in the cloud of its owner, as an invitation names it.
///
/// It says whose node it is, how the history of its branch begins, and a point of that history at which the invited user
/// has access. It contains no names and no keys: its reader learns that the node exists, and cannot read it.
///
/// ```swift
/// let text = invite.cloudPath.path()           // the sender puts this into the message
/// let cloudPath = ZDCCloudPath(path: text)     // the recipient makes the value again
/// ```
public struct ZDCCloudPath: Sendable, Hashable {
  package let target: PointerTarget

  package init(_ target: PointerTarget) { self.target = target }

  private static let version: UInt8 = 1

  /// Reads a path that ``path()`` wrote.
  ///
  /// ```swift
  /// guard let cloudPath = ZDCCloudPath(path: invitation.cloudPath) else { return }
  /// print("an invitation of", cloudPath.ownerID)
  /// ```
  ///
  /// - Returns: nil if the text is not a path, for example because a part of it is missing.
  public init?(path: String) {
    guard let bytes = ZBase32.decode(path), bytes.first == Self.version else { return nil }
    var reader = ByteReader(bytes.dropFirst())
    do throws(ZDCSecurityError) {
      target = try PointerTarget(&reader)
      try reader.finish()
    } catch { return nil }
  }

  /// Returns the path as text of 271 lower-case letters and digits.
  public func path() -> String {
    var out = ByteWriter()
    out.append(Self.version)
    target.write(to: &out)
    return ZBase32.encode(out.bytes)
  }

  /// The ``ZDCUser/uuid`` of the node's owner.
  public var ownerID: String { target.owner.text }

  /// The ``ZDCNode/cloudID`` of the node.
  public var cloudID: String { target.node.text }
}

extension ZDCCloudPath: Codable {
  /// Decodes the text of ``path()``.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let path = ZDCCloudPath(path: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a cloud path")
    }
    self = path
  }

  /// Encodes the text of ``path()``.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(path())
  }
}

/// The part of an invitation that names a shared node. ``ZDCCloudReadTransaction/graftInvite(for:)`` returns it.
///
/// ```swift
/// guard let invite = cloud.graftInvite(for: list) else { return }
/// let invitation = ["cloudID": invite.cloudID, "cloudPath": invite.cloudPath.path()]
/// ```
public struct ZDCGraftInvite: Sendable, Hashable, Codable {
  /// The ``ZDCNode/cloudID`` of the node. It stays the same when the owner renames or moves the node.
  public let cloudID: String
  /// The place of the node in the owner's cloud.
  public let cloudPath: ZDCCloudPath

  /// Creates an invite from the two parts of an invitation.
  ///
  /// ```swift
  /// guard let cloudPath = ZDCCloudPath(path: invitation.cloudPath) else { return }
  /// let invite = ZDCGraftInvite(cloudID: invitation.cloudID, cloudPath: cloudPath)
  /// try cloud.graftNode(
  ///   withLocalPath: path, remoteCloudPath: invite.cloudPath, remoteCloudID: invite.cloudID, remoteUser: sender)
  /// ```
  public init(cloudID: String, cloudPath: ZDCCloudPath) {
    self.cloudID = cloudID
    self.cloudPath = cloudPath
  }
}
