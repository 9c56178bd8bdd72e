// The JSON bodies of the control plane (project PROTOCOL.md, "Wire API"). Both sides share one type per body.

/// `GET /v1/info`
public struct ServerInfo: Codable, Sendable, Hashable {
  public var name: String
  public var version: String
  /// The protocol generations that the server supports; this package supports 1.
  public var protocols: [Int]
  public var registration: String
  public var timeMs: UInt64

  public init(name: String, version: String, protocols: [Int], registration: String, timeMs: UInt64) {
    self.name = name
    self.version = version
    self.protocols = protocols
    self.registration = registration
    self.timeMs = timeMs
  }
}

/// `POST /v1/accounts`
public struct RegisterRequest: Codable, Sendable, Hashable {
  public struct Tree: Codable, Sendable, Hashable {
    public var appTreeID: String
    /// Four bundles in trunk order, each {record of the root, grant, access list, commit 0}.
    public var trunks: [WireBytes]

    public init(appTreeID: String, trunks: [WireBytes]) {
      self.appTreeID = appTreeID
      self.trunks = trunks
    }
  }

  public var genesis: WireBytes
  public var keyring: WireBytes
  public var lookupID: LookupID
  public var loginKey: WireBytes
  public var invite: String?
  public var tree: Tree

  public init(
    genesis: WireBytes, keyring: WireBytes, lookupID: LookupID, loginKey: WireBytes, invite: String?, tree: Tree
  ) {
    self.genesis = genesis
    self.keyring = keyring
    self.lookupID = lookupID
    self.loginKey = loginKey
    self.invite = invite
    self.tree = tree
  }
}

public struct RegisterResponse: Codable, Sendable, Hashable {
  public var userID: UserID

  public init(userID: UserID) {
    self.userID = userID
  }
}

/// `POST /v1/auth/challenge`. Contains one of the two IDs. The answer looks the same whether it is known or not.
public struct ChallengeRequest: Codable, Sendable, Hashable {
  public var lookupID: LookupID?
  public var userID: UserID?

  public init(lookupID: LookupID? = nil, userID: UserID? = nil) {
    self.lookupID = lookupID
    self.userID = userID
  }
}

public struct ChallengeResponse: Codable, Sendable, Hashable {
  public var nonce: WireBytes
  public var expiresMs: UInt64

  public init(nonce: WireBytes, expiresMs: UInt64) {
    self.nonce = nonce
    self.expiresMs = expiresMs
  }
}

/// `POST /v1/auth/login`: the account's login key vouches for a device and its key.
public struct LoginRequest: Codable, Sendable, Hashable {
  public var lookupID: LookupID
  public var origin: String
  public var deviceID: DeviceID
  public var deviceKey: WireBytes
  public var nonce: WireBytes
  public var expiresMs: UInt64
  public var signature: WireBytes

  public init(
    lookupID: LookupID, origin: String, deviceID: DeviceID, deviceKey: WireBytes, nonce: WireBytes,
    expiresMs: UInt64, signature: WireBytes
  ) {
    self.lookupID = lookupID
    self.origin = origin
    self.deviceID = deviceID
    self.deviceKey = deviceKey
    self.nonce = nonce
    self.expiresMs = expiresMs
    self.signature = signature
  }

  /// The bytes that the signature covers, under the label "login":
  /// `v16 origin ‖ lookupID ‖ deviceID ‖ deviceKey ‖ nonce ‖ u64 expires`.
  public var signedBytes: [UInt8] {
    var out = ByteWriter(capacity: 200)
    out.append16(Array(origin.utf8.prefix(1_024)))
    out.append(lookupID)
    out.append(deviceID)
    out.append(contentsOf: deviceKey.bytes)
    out.append(contentsOf: nonce.bytes)
    out.append(expiresMs)
    return out.bytes
  }
}

/// `POST /v1/auth/device`: a device that logged in before opens its next session with its device key.
public struct DeviceLoginRequest: Codable, Sendable, Hashable {
  public var userID: UserID
  public var origin: String
  public var deviceID: DeviceID
  public var nonce: WireBytes
  public var expiresMs: UInt64
  public var signature: WireBytes

  public init(
    userID: UserID, origin: String, deviceID: DeviceID, nonce: WireBytes, expiresMs: UInt64, signature: WireBytes
  ) {
    self.userID = userID
    self.origin = origin
    self.deviceID = deviceID
    self.nonce = nonce
    self.expiresMs = expiresMs
    self.signature = signature
  }

  /// The bytes that the signature covers, under the label "device-login":
  /// `v16 origin ‖ userID ‖ deviceID ‖ nonce ‖ u64 expires`.
  public var signedBytes: [UInt8] {
    var out = ByteWriter(capacity: 160)
    out.append16(Array(origin.utf8.prefix(1_024)))
    out.append(userID)
    out.append(deviceID)
    out.append(contentsOf: nonce.bytes)
    out.append(expiresMs)
    return out.bytes
  }
}

public struct SessionResponse: Codable, Sendable, Hashable {
  /// 32 random bytes; sent back as `Authorization: Bearer <z-base-32>`.
  public var token: WireBytes
  public var userID: UserID
  public var expiresMs: UInt64

  public init(token: WireBytes, userID: UserID, expiresMs: UInt64) {
    self.token = token
    self.userID = userID
    self.expiresMs = expiresMs
  }
}

/// `GET /v1/auth/sessions`
public struct SessionList: Codable, Sendable, Hashable {
  public struct Session: Codable, Sendable, Hashable {
    public var deviceID: DeviceID
    public var createdMs: UInt64
    public var expiresMs: UInt64
    public var isCurrent: Bool

    public init(deviceID: DeviceID, createdMs: UInt64, expiresMs: UInt64, isCurrent: Bool) {
      self.deviceID = deviceID
      self.createdMs = createdMs
      self.expiresMs = expiresMs
      self.isCurrent = isCurrent
    }
  }

  public var sessions: [Session]

  public init(sessions: [Session]) {
    self.sessions = sessions
  }
}

/// `POST /v1/account/links`: the next identity link. Keyring and login change with it if its kind requires that.
public struct AppendLinkRequest: Codable, Sendable, Hashable {
  public var link: WireBytes
  public var keyring: WireBytes?
  public var lookupID: LookupID?
  public var loginKey: WireBytes?

  public init(link: WireBytes, keyring: WireBytes? = nil, lookupID: LookupID? = nil, loginKey: WireBytes? = nil) {
    self.link = link
    self.keyring = keyring
    self.lookupID = lookupID
    self.loginKey = loginKey
  }
}

/// A zone and the head of its log on the server.
public struct ZoneStatus: Codable, Sendable, Hashable {
  public var treeID: TreeID
  public var zoneRoot: NodeID
  public var seq: UInt64
  public var head: CommitHash

  public init(zone: ZoneID, seq: UInt64, head: CommitHash) {
    treeID = zone.tree
    zoneRoot = zone.root
    self.seq = seq
    self.head = head
  }

  public var zone: ZoneID { ZoneID(tree: treeID, root: zoneRoot) }
}

/// The point in a user's feed of changes up to which a server has reported (PROTOCOL 4.5). It is opaque to clients,
/// which send back the last one that they received.
public struct FeedPosition: Codable, Sendable, Hashable {
  public let text: String

  public init(_ text: String) {
    self.text = text
  }

  public init(from decoder: any Decoder) throws {
    text = try decoder.singleValueContainer().decode(String.self)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

/// `GET /v1/zones?since=POSITION` and the event stream's first event: the user's zones that have changed since.
public struct ZoneList: Codable, Sendable, Hashable {
  /// The cursor for the next call; nil in a list of offered zones, and in a list that covers only some zones.
  public var feedPosition: FeedPosition?
  public var zones: [ZoneStatus]
  /// The end of the user's identity chain; nil in a list of offered zones.
  public var chain: ChainHead?
  /// The start of the next page of offered zones (`after`); nil if this is the last page.
  public var next: UInt64?

  public init(
    feedPosition: FeedPosition? = nil, zones: [ZoneStatus], chain: ChainHead? = nil, next: UInt64? = nil
  ) {
    self.feedPosition = feedPosition
    self.zones = zones
    self.chain = chain
    self.next = next
  }
}

/// The end of an identity chain, as the server states it (PROTOCOL 4.5). The hash of a link covers all links before it.
public struct ChainHead: Codable, Sendable, Hashable {
  public var seq: UInt32
  public var head: LinkHash

  public init(seq: UInt32, head: LinkHash) {
    self.seq = seq
    self.head = head
  }
}

/// `event: head` of the event stream.
public struct HeadEvent: Codable, Sendable, Hashable {
  public var status: ZoneStatus
  /// The commit's page (the commit and its live records), if it is at most 64 KiB.
  public var page: WireBytes?

  public init(status: ZoneStatus, page: WireBytes?) {
    self.status = status
    self.page = page
  }
}

/// The answer to `POST /v1/commits`.
public struct CommitResponse: Codable, Sendable, Hashable {
  public var receivedMs: UInt64
  public var zones: [ZoneStatus]

  public init(receivedMs: UInt64, zones: [ZoneStatus]) {
    self.receivedMs = receivedMs
    self.zones = zones
  }
}

/// `POST /v1/blobs`
public struct BlobTicketRequest: Codable, Sendable, Hashable {
  public var blobID: BlobID
  public var treeID: TreeID
  public var nodeID: NodeID
  public var cipherLength: UInt64

  public init(blobID: BlobID, treeID: TreeID, nodeID: NodeID, cipherLength: UInt64) {
    self.blobID = blobID
    self.treeID = treeID
    self.nodeID = nodeID
    self.cipherLength = cipherLength
  }
}

/// The answer to a ticket and to `GET /v1/blobs/{blobID}/parts`.
public struct BlobStatus: Codable, Sendable, Hashable {
  public struct Part: Codable, Sendable, Hashable {
    public var index: Int
    /// SHA-256 over the part's leaf hashes.
    public var hash: WireBytes

    public init(index: Int, hash: WireBytes) {
      self.index = index
      self.hash = hash
    }
  }

  public var blobID: BlobID
  public var cipherLength: UInt64
  public var isComplete: Bool
  /// The root over all leaves, once complete.
  public var contentRoot: ContentRoot?
  public var parts: [Part]

  public init(blobID: BlobID, cipherLength: UInt64, isComplete: Bool, contentRoot: ContentRoot?, parts: [Part]) {
    self.blobID = blobID
    self.cipherLength = cipherLength
    self.isComplete = isComplete
    self.contentRoot = contentRoot
    self.parts = parts
  }
}

/// `GET /v1/account/audit`: everything that the server holds for the user, field by field.
public struct AuditReport: Codable, Sendable, Hashable {
  public struct Field: Codable, Sendable, Hashable {
    public var name: String
    public var value: String

    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  public struct Section: Codable, Sendable, Hashable {
    public var title: String
    public var fields: [Field]

    public init(title: String, fields: [Field]) {
      self.title = title
      self.fields = fields
    }
  }

  public var sections: [Section]

  public init(sections: [Section]) {
    self.sections = sections
  }
}
