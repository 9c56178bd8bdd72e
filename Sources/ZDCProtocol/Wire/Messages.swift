// The JSON bodies of the control plane (project PROTOCOL.md, "Wire API"). Both sides share one type per body.

/// `GET /v1/info`
package struct ServerInfo: Codable, Sendable, Hashable {
  package var name: String
  package var version: String
  /// The protocol generations that the server supports; this package supports 1.
  package var protocols: [Int]
  package var registration: String
  package var timeMs: UInt64

  package init(name: String, version: String, protocols: [Int], registration: String, timeMs: UInt64) {
    self.name = name
    self.version = version
    self.protocols = protocols
    self.registration = registration
    self.timeMs = timeMs
  }
}

/// `POST /v1/accounts`
package struct RegisterRequest: Codable, Sendable, Hashable {
  package struct Tree: Codable, Sendable, Hashable {
    package var appTreeID: String
    /// Four bundles in trunk order, each {record of the root, grant, access list, commit 0}.
    package var trunks: [WireBytes]

    package init(appTreeID: String, trunks: [WireBytes]) {
      self.appTreeID = appTreeID
      self.trunks = trunks
    }
  }

  package var genesis: WireBytes
  package var keyring: WireBytes
  package var lookupID: LookupID
  package var loginKey: WireBytes
  package var invite: String?
  package var tree: Tree

  package init(
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

package struct RegisterResponse: Codable, Sendable, Hashable {
  package var userID: UserID

  package init(userID: UserID) {
    self.userID = userID
  }
}

/// `POST /v1/auth/challenge`. Contains one of the two IDs. The answer looks the same whether it is known or not.
package struct ChallengeRequest: Codable, Sendable, Hashable {
  package var lookupID: LookupID?
  package var userID: UserID?

  package init(lookupID: LookupID? = nil, userID: UserID? = nil) {
    self.lookupID = lookupID
    self.userID = userID
  }
}

package struct ChallengeResponse: Codable, Sendable, Hashable {
  package var nonce: WireBytes
  package var expiresMs: UInt64

  package init(nonce: WireBytes, expiresMs: UInt64) {
    self.nonce = nonce
    self.expiresMs = expiresMs
  }
}

/// `POST /v1/auth/login`: the account's login key vouches for a device and its key.
package struct LoginRequest: Codable, Sendable, Hashable {
  package var lookupID: LookupID
  package var origin: String
  package var deviceID: DeviceID
  package var deviceKey: WireBytes
  package var nonce: WireBytes
  package var expiresMs: UInt64
  package var signature: WireBytes

  package init(
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
  package var signedBytes: [UInt8] {
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
package struct DeviceLoginRequest: Codable, Sendable, Hashable {
  package var userID: UserID
  package var origin: String
  package var deviceID: DeviceID
  package var nonce: WireBytes
  package var expiresMs: UInt64
  package var signature: WireBytes

  package init(
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
  package var signedBytes: [UInt8] {
    var out = ByteWriter(capacity: 160)
    out.append16(Array(origin.utf8.prefix(1_024)))
    out.append(userID)
    out.append(deviceID)
    out.append(contentsOf: nonce.bytes)
    out.append(expiresMs)
    return out.bytes
  }
}

package struct SessionResponse: Codable, Sendable, Hashable {
  /// 32 random bytes; sent back as `Authorization: Bearer <z-base-32>`.
  package var token: WireBytes
  package var userID: UserID
  package var expiresMs: UInt64

  package init(token: WireBytes, userID: UserID, expiresMs: UInt64) {
    self.token = token
    self.userID = userID
    self.expiresMs = expiresMs
  }
}

/// `GET /v1/auth/sessions`
package struct SessionList: Codable, Sendable, Hashable {
  package struct Session: Codable, Sendable, Hashable {
    package var deviceID: DeviceID
    package var createdMs: UInt64
    package var expiresMs: UInt64
    package var isCurrent: Bool

    package init(deviceID: DeviceID, createdMs: UInt64, expiresMs: UInt64, isCurrent: Bool) {
      self.deviceID = deviceID
      self.createdMs = createdMs
      self.expiresMs = expiresMs
      self.isCurrent = isCurrent
    }
  }

  /// A device whose key the server knows, with or without a session.
  package struct Device: Codable, Sendable, Hashable {
    package var deviceID: DeviceID
    package var createdMs: UInt64
    /// When its newest session was opened; nil if none is left.
    package var lastLoginMs: UInt64?
    package var isCurrent: Bool

    package init(deviceID: DeviceID, createdMs: UInt64, lastLoginMs: UInt64?, isCurrent: Bool) {
      self.deviceID = deviceID
      self.createdMs = createdMs
      self.lastLoginMs = lastLoginMs
      self.isCurrent = isCurrent
    }
  }

  package var sessions: [Session]
  package var devices: [Device]

  package init(sessions: [Session], devices: [Device]) {
    self.sessions = sessions
    self.devices = devices
  }
}

/// `POST /v1/account/links`: the next identity link. Keyring and login change with it if its kind requires that.
package struct AppendLinkRequest: Codable, Sendable, Hashable {
  package var link: WireBytes
  package var keyring: WireBytes?
  package var lookupID: LookupID?
  package var loginKey: WireBytes?

  package init(link: WireBytes, keyring: WireBytes? = nil, lookupID: LookupID? = nil, loginKey: WireBytes? = nil) {
    self.link = link
    self.keyring = keyring
    self.lookupID = lookupID
    self.loginKey = loginKey
  }
}

/// A zone and the head of its log on the server.
package struct ZoneStatus: Codable, Sendable, Hashable {
  package var treeID: TreeID
  package var zoneRoot: NodeID
  package var seq: UInt64
  package var head: CommitHash

  package init(zone: ZoneID, seq: UInt64, head: CommitHash) {
    treeID = zone.tree
    zoneRoot = zone.root
    self.seq = seq
    self.head = head
  }

  package var zone: ZoneID { ZoneID(tree: treeID, root: zoneRoot) }
}

/// The point in a user's feed of changes up to which a server has reported (PROTOCOL 4.5). It is opaque to clients,
/// which send back the last one that they received.
package struct FeedPosition: Codable, Sendable, Hashable {
  package let text: String

  package init(_ text: String) {
    self.text = text
  }

  package init(from decoder: any Decoder) throws {
    text = try decoder.singleValueContainer().decode(String.self)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

/// `GET /v1/zones?since=POSITION` and the event stream's first event: the zones that have changed since, first those of
/// the user's own trees, then accepted ones.
package struct ZoneList: Codable, Sendable, Hashable {
  /// The cursor for the next call; nil in a list of offered zones, and in a list that covers only some zones.
  package var feedPosition: FeedPosition?
  package var zones: [ZoneStatus]
  /// The end of the user's identity chain; nil in a list of offered zones.
  package var chain: ChainHead?
  /// The start of the next page of offered zones (`after`); nil if this is the last page.
  package var next: UInt64?
  /// The cursor of the newest message that waits in a mailbox of the user; nil if none waits.
  package var newestMessage: UInt64?

  package init(
    feedPosition: FeedPosition? = nil, zones: [ZoneStatus], chain: ChainHead? = nil, next: UInt64? = nil,
    newestMessage: UInt64? = nil
  ) {
    self.feedPosition = feedPosition
    self.zones = zones
    self.chain = chain
    self.next = next
    self.newestMessage = newestMessage
  }
}

/// The end of an identity chain, as the server states it (PROTOCOL 4.5). The hash of a link covers all links before it.
package struct ChainHead: Codable, Sendable, Hashable {
  package var seq: UInt32
  package var head: LinkHash

  package init(seq: UInt32, head: LinkHash) {
    self.seq = seq
    self.head = head
  }
}

/// `event: head` of the event stream.
package struct HeadEvent: Codable, Sendable, Hashable {
  package var status: ZoneStatus
  /// The commit's page (the commit and its live records), if it is at most 64 KiB.
  package var page: WireBytes?

  package init(status: ZoneStatus, page: WireBytes?) {
    self.status = status
    self.page = page
  }
}

/// The answer to `POST /v1/commits`.
package struct CommitResponse: Codable, Sendable, Hashable {
  package var receivedMs: UInt64
  package var zones: [ZoneStatus]

  package init(receivedMs: UInt64, zones: [ZoneStatus]) {
    self.receivedMs = receivedMs
    self.zones = zones
  }
}

/// `POST /v1/blobs`
package struct BlobTicketRequest: Codable, Sendable, Hashable {
  package var blobID: BlobID
  package var treeID: TreeID
  package var nodeID: NodeID
  package var cipherLength: UInt64
  /// The zone of a node that does not exist yet; nil for the tree's trunk. Ignored for a node that exists.
  package var zoneRoot: NodeID?

  package init(
    blobID: BlobID, treeID: TreeID, nodeID: NodeID, cipherLength: UInt64, zoneRoot: NodeID? = nil
  ) {
    self.blobID = blobID
    self.treeID = treeID
    self.nodeID = nodeID
    self.cipherLength = cipherLength
    self.zoneRoot = zoneRoot
  }
}

/// The answer to a ticket and to `GET /v1/blobs/{blobID}/parts`.
package struct BlobStatus: Codable, Sendable, Hashable {
  package struct Part: Codable, Sendable, Hashable {
    package var index: Int
    /// SHA-256 over the part's leaf hashes.
    package var hash: WireBytes

    package init(index: Int, hash: WireBytes) {
      self.index = index
      self.hash = hash
    }
  }

  package var blobID: BlobID
  package var cipherLength: UInt64
  package var isComplete: Bool
  /// The root over all leaves, once complete.
  package var contentRoot: ContentRoot?
  package var parts: [Part]

  package init(blobID: BlobID, cipherLength: UInt64, isComplete: Bool, contentRoot: ContentRoot?, parts: [Part]) {
    self.blobID = blobID
    self.cipherLength = cipherLength
    self.isComplete = isComplete
    self.contentRoot = contentRoot
    self.parts = parts
  }
}

/// `GET /v1/account/audit`: everything that the server holds for the user, field by field.
package struct AuditReport: Codable, Sendable, Hashable {
  package struct Field: Codable, Sendable, Hashable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  package struct Section: Codable, Sendable, Hashable {
    package var title: String
    package var fields: [Field]

    package init(title: String, fields: [Field]) {
      self.title = title
      self.fields = fields
    }
  }

  package var sections: [Section]

  package init(sections: [Section]) {
    self.sections = sections
  }
}
