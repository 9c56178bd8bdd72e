extension Sequence<IdentityLink> {
  /// The handle that a verified chain claims; nil for none.
  package var handle: Handle? { compactMap(\.claimedHandle).last ?? nil }
}

/// One link of a user's identity chain (PROTOCOL 3.2).
///
/// Decoding checks only the format; ``IdentityReplay`` checks signatures and order.
package struct IdentityLink: Sendable, Hashable {
  package enum Kind: UInt8, Sendable {
    case genesis = 0, rotateKeys = 1, rotateRoot = 2, claims = 3, closed = 4
  }

  package struct Claim: Sendable, Hashable {
    package static let handle: UInt8 = 1
    package static let tree: UInt8 = 2
    package var type: UInt8
    package var value: [UInt8]

    package init(type: UInt8, value: [UInt8]) {
      self.type = type
      self.value = value
    }

    /// The claim that this is the user's handle, in place of an earlier one; nil gives the handle up.
    package static func handle(_ name: Handle?) -> Claim {
      Claim(type: handle, value: Array((name?.text ?? noHandle).utf8))
    }

    /// The value of a claim that gives a handle up.
    private static let noHandle = "-"

    /// The handle of a claim of one. The outer optional is nil for a claim of another type, the inner one if the claim
    /// gives the handle up, or its value is no handle.
    package var claimedHandle: Handle?? {
      guard type == Self.handle else { return nil }
      return .some(Handle(String(decoding: value, as: UTF8.self)))
    }

    /// Whether it is no handle claim, or one that a server accepts: of a handle, or of none.
    package var isHandleValid: Bool {
      guard let claimed = claimedHandle else { return true }
      return claimed != nil || value == Array(Self.noHandle.utf8)
    }

    /// The claim that an app's tree exists: `H("tree-claim", appTreeID)` and the four genesis commits, in trunk order.
    package static func tree(appTreeID: String, genesisCommits: [CommitHash]) -> Claim {
      let name = Bytes32<TreeRole>(labelledHash: "tree-claim", Array(appTreeID.utf8))
      return Claim(type: tree, value: name.bytes + genesisCommits.flatMap(\.bytes))
    }

    fileprivate var isWellFormed: Bool {
      switch type {
      case Self.handle: !value.isEmpty && String(validating: value, as: UTF8.self) != nil
      case Self.tree: value.count == 32 * (1 + Trunk.allCases.count)
      default: false
      }
    }
  }

  package static let encPubBytes = 1_216

  package let kind: Kind
  package let seq: UInt32
  package let prev: LinkHash
  /// Zero in the genesis link, where the user ID is the hash of the link itself.
  package let statedUserID: UserID
  package let timeMs: UInt64
  package let rootPub: [UInt8]
  package let signGen: UInt32
  package let signPub: [UInt8]
  package let encGen: UInt32
  package let encPub: [UInt8]
  package let compromise: UInt8
  package let keyringVersion: UInt64
  package let keyringHash: KeyringHash
  package let claims: [Claim]
  package let sigRoot: [UInt8]
  package let sigNewRoot: [UInt8]
  package let sigSign: [UInt8]
  /// The received bytes. Hashes and signatures are checked over these, never over a re-encoding.
  package let bytes: [UInt8]

  static let genesisIDBytes = 1_372
  static let signatureBytes = 64 * 3

  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    try require(bytes.count <= Limits.linkBytes, .limitExceeded)
    self.bytes = bytes
    var reader = ByteReader(bytes)
    try reader.readPreamble(magic: "ZDIL")
    guard let kind = Kind(rawValue: try reader.readUInt8()) else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    self.kind = kind
    seq = try reader.readUInt32()
    prev = try reader.read32()
    statedUserID = try reader.read32()
    timeMs = try reader.readUInt64()
    rootPub = Array(try reader.read(count: 32))
    signGen = try reader.readUInt32()
    signPub = Array(try reader.read(count: 32))
    encGen = try reader.readUInt32()
    encPub = Array(try reader.read(count: Self.encPubBytes))
    compromise = try reader.readUInt8()
    try require(compromise <= 3, .nonCanonicalEncoding)
    keyringVersion = try reader.readUInt64()
    keyringHash = try reader.read32()
    claims = try Self.readClaims(try reader.readVariable16(limit: Limits.linkClaimBytes))
    sigRoot = Array(try reader.read(count: 64))
    sigNewRoot = Array(try reader.read(count: 64))
    sigSign = Array(try reader.read(count: 64))
    try reader.finish()
  }

  private static func readClaims(_ field: ArraySlice<UInt8>) throws(ZDCSecurityError) -> [Claim] {
    var reader = ByteReader(field)
    var claims: [Claim] = []
    while reader.remaining > 0 {
      let claim = Claim(type: try reader.readUInt8(), value: Array(try reader.readVariable16()))
      try require(claim.isWellFormed, .nonCanonicalEncoding)
      claims.append(claim)
    }
    return claims
  }

  /// The user's handle after this link. The outer optional is nil if the link does not change it, the inner one if the
  /// user has no handle any more, as after the account was closed.
  package var claimedHandle: Handle?? { kind == .closed ? .some(nil) : claims.compactMap(\.claimedHandle).last }

  package var hash: LinkHash { LinkHash(labelledHash: "link", bytes) }

  /// The bytes that the three signatures cover.
  package var signedBytes: ArraySlice<UInt8> { bytes.dropLast(Self.signatureBytes) }

  /// `H("user-id", genesis bytes [0, 1372))` for a genesis link; otherwise the stated user ID.
  package var userID: UserID {
    kind == .genesis ? UserID(labelledHash: "user-id", slice: bytes.prefix(Self.genesisIDBytes)) : statedUserID
  }

  /// The fields of a link before it is signed.
  package struct Fields: Sendable {
    package var kind: Kind
    package var seq: UInt32 = 0
    package var prev: LinkHash = .zero
    package var userID: UserID = .zero
    package var timeMs: UInt64
    package var rootPub: [UInt8]
    package var signGen: UInt32 = 1
    package var signPub: [UInt8]
    package var encGen: UInt32 = 1
    package var encPub: [UInt8]
    package var compromise: UInt8 = 0
    package var keyringVersion: UInt64 = 1
    package var keyringHash: KeyringHash = .zero
    package var claims: [Claim] = []

    package init(kind: Kind, timeMs: UInt64, rootPub: [UInt8], signPub: [UInt8], encPub: [UInt8]) {
      self.kind = kind
      self.timeMs = timeMs
      self.rootPub = rootPub
      self.signPub = signPub
      self.encPub = encPub
    }

    /// The user that a genesis link with these fields creates. It does not depend on keyring or claims.
    package var genesisUserID: UserID {
      UserID(labelledHash: "user-id", slice: unsignedBytes.prefix(IdentityLink.genesisIDBytes))
    }

    /// The bytes that the signatures cover.
    package var unsignedBytes: [UInt8] {
      var writer = ByteWriter(magic: "ZDIL", capacity: 1_800)
      writer.append(kind.rawValue)
      writer.append(seq)
      writer.append(prev)
      writer.append(userID)
      writer.append(timeMs)
      writer.append(contentsOf: rootPub)
      writer.append(signGen)
      writer.append(contentsOf: signPub)
      writer.append(encGen)
      writer.append(contentsOf: encPub)
      writer.append(compromise)
      writer.append(keyringVersion)
      writer.append(keyringHash)
      writer.append16(claimBytes)
      return writer.bytes
    }

    private var claimBytes: [UInt8] {
      var writer = ByteWriter()
      for claim in claims {
        writer.append(claim.type)
        writer.append16(claim.value)
      }
      return writer.bytes
    }
  }
}
