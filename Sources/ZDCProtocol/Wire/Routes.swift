/// All paths of the wire API, shared by both sides. Parameters are in braces; IDs are z-base-32 text.
package enum Routes {
  package static let health = "/healthz"
  package static let ready = "/readyz"
  package static let metrics = "/metrics"

  package static let info = "/v1/info"
  package static let accounts = "/v1/accounts"
  package static let challenge = "/v1/auth/challenge"
  package static let login = "/v1/auth/login"
  package static let deviceLogin = "/v1/auth/device"
  package static let session = "/v1/auth/session"
  package static let sessions = "/v1/auth/sessions"
  package static let sessionOfDevice = "/v1/auth/sessions/{deviceID}"

  package static let deviceLink = "/v1/device-links/{linkID}"
  package static let deviceLinkAnswer = "/v1/device-links/{linkID}/answer"
  package static let deviceLinkNonce = "/v1/device-links/{linkID}/nonce"

  package static let keyring = "/v1/account/keyring"
  package static let links = "/v1/account/links"
  package static let audit = "/v1/account/audit"
  package static let chain = "/v1/users/{userID}/chain"
  package static let chains = "/v1/users/chains"

  package static let handles = "/v1/handles/{handle}"

  package static let tree = "/v1/trees/{appTreeID}"
  package static let zones = "/v1/zones"
  package static let zonePages = "/v1/zones/commits"
  package static let membership = "/v1/memberships/{treeID}/{zoneRoot}"
  package static let events = "/v1/events"
  package static let commits = "/v1/commits"
  package static let zoneCommits = "/v1/trees/{treeID}/zones/{zoneRoot}/commits"
  package static let zoneState = "/v1/trees/{treeID}/zones/{zoneRoot}/state"
  package static let records = "/v1/trees/{treeID}/zones/{zoneRoot}/records"
  package static let contents = "/v1/trees/{treeID}/zones/{zoneRoot}/contents"
  package static let kept = "/v1/trees/{treeID}/zones/{zoneRoot}/kept"
  package static let node = "/v1/trees/{treeID}/nodes/{nodeID}"
  package static let content = "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}"
  package static let leafHashes = "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}/leaves"
  package static let leafProof = "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}/proof"

  package static let messages = "/v1/messages"
  package static let inbox = "/v1/trees/{treeID}/messages"
  package static let inboxEnvelopes = "/v1/trees/{treeID}/messages/read"
  package static let inboxMessage = "/v1/trees/{treeID}/messages/{userID}/{messageID}"
  package static let sender = "/v1/trees/{treeID}/senders/{userID}"

  package static let blobs = "/v1/blobs"
  package static let blob = "/v1/blobs/{blobID}"
  package static let blobParts = "/v1/blobs/{blobID}/parts"
  package static let blobPart = "/v1/blobs/{blobID}/parts/{index}"
  package static let blobComplete = "/v1/blobs/{blobID}/complete"

  /// Replaces the parameters of a route, from left to right.
  package static func path(_ route: String, _ values: String...) -> String {
    var rest = values[...]
    let parts = route.split(separator: "/").map { part in
      part.first == "{" ? rest.popFirst() ?? "" : String(part)
    }
    return "/" + parts.joined(separator: "/")
  }
}

/// Header fields of the wire API.
package enum WireHeaders {
  /// `seq ":" z-base-32 hash` of the zone's head, on commit pages and 409 pages.
  package static let zoneHead = "zdc-zone-head"
  /// The zone of a commit page, `treeID "/" zoneRoot`: a 409 to a request with several zones names the one that it is
  /// about.
  package static let zone = "zdc-zone"
  /// `1` if the page ends before the head.
  package static let more = "zdc-more"
  /// SHA-256 over the leaf hashes of an uploaded part, z-base-32. A part with a different hash under the same index is
  /// refused.
  package static let partHash = "zdc-part-hash"
}
