/// All paths of the wire API, shared by both sides. Parameters are in braces; IDs are z-base-32 text.
public enum Routes {
  public static let health = "/healthz"
  public static let ready = "/readyz"
  public static let metrics = "/metrics"

  public static let info = "/v1/info"
  public static let accounts = "/v1/accounts"
  public static let challenge = "/v1/auth/challenge"
  public static let login = "/v1/auth/login"
  public static let deviceLogin = "/v1/auth/device"
  public static let session = "/v1/auth/session"
  public static let sessions = "/v1/auth/sessions"
  public static let sessionOfDevice = "/v1/auth/sessions/{deviceID}"

  public static let keyring = "/v1/account/keyring"
  public static let links = "/v1/account/links"
  public static let audit = "/v1/account/audit"
  public static let chain = "/v1/users/{userID}/chain"
  public static let chains = "/v1/users/chains"

  public static let tree = "/v1/trees/{appTreeID}"
  public static let zones = "/v1/zones"
  public static let events = "/v1/events"
  public static let commits = "/v1/commits"
  public static let zoneCommits = "/v1/trees/{treeID}/zones/{zoneRoot}/commits"
  public static let records = "/v1/trees/{treeID}/zones/{zoneRoot}/records"
  public static let contents = "/v1/trees/{treeID}/zones/{zoneRoot}/contents"
  public static let node = "/v1/trees/{treeID}/nodes/{nodeID}"
  public static let content = "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}"
  public static let leafHashes = "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}/leaves"
  public static let leafProof = "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}/proof"

  public static let blobs = "/v1/blobs"
  public static let blob = "/v1/blobs/{blobID}"
  public static let blobParts = "/v1/blobs/{blobID}/parts"
  public static let blobPart = "/v1/blobs/{blobID}/parts/{index}"
  public static let blobComplete = "/v1/blobs/{blobID}/complete"

  /// Replaces the parameters of a route, from left to right.
  public static func path(_ route: String, _ values: String...) -> String {
    var rest = values[...]
    let parts = route.split(separator: "/").map { part in
      part.first == "{" ? rest.popFirst() ?? "" : String(part)
    }
    return "/" + parts.joined(separator: "/")
  }
}

/// Header fields of the wire API.
public enum WireHeaders {
  /// `seq ":" z-base-32 hash` of the zone's head, on commit pages and 409 pages.
  public static let zoneHead = "zdc-zone-head"
  /// `1` if the page ends before the head.
  public static let more = "zdc-more"
  /// SHA-256 over the leaf hashes of an uploaded part, z-base-32. A part with a different hash under the same index is
  /// refused.
  public static let partHash = "zdc-part-hash"
}
