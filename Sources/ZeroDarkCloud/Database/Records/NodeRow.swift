internal import ZDCCrypto
internal import ZDCProtocol

/// A node as this device has it: place and name as the app sees them, and the newest version in the cloud that is
/// known.
struct NodeRow: Sendable {
  /// The row's number; 0 until the row is inserted.
  var id: Int64 = 0
  let uuid: String
  var zone: Int64
  var nodeID: NodeID
  /// The parent's row; nil for the root of a trunk.
  var parent: Int64?
  /// Distance from the trunk's root.
  var depth: Int
  var nameTag: NameTag
  /// Folded UTF-8; empty for the root of a trunk.
  var name: [UInt8]
  var key: NodeKey
  var keyGen: UInt32
  var historyWrap: [UInt8] = []
  var createdMs: UInt64
  var burnMs: UInt64?
  var cloud: CloudFacts?
  var content: ContentFacts?
  /// Why the newest version in the cloud could not be opened (class 2 of PROTOCOL 3.7); the last good one is shown.
  var quarantine: String?
  /// Fields of the record's private part that this client does not use. Every next version keeps them.
  var unused: RecordPrivate?

  var isUploaded: Bool { cloud != nil }

  /// Whether it is as `createNode` makes it: nothing in the cloud, nothing from there.
  var isFresh: Bool { cloud == nil && content == nil && historyWrap.isEmpty && quarantine == nil && unused == nil }

  /// What the server's copy of the record says.
  struct CloudFacts: Sendable, Hashable {
    var recordVersion: UInt64
    var recordHash: RecordHash
    var parent: NodeID
    /// The name there; the row's own is what the app sees.
    var name: [UInt8]
    var nameTag: NameTag
    var writer: UserID
    var receivedMs: UInt64
  }

  /// The content of the newest version in the cloud.
  struct ContentFacts: Sendable {
    var content: NodeRecord.Content
    var secrets: ContentSecrets
    /// Who put it, and his clock then.
    var writer: UserID
    var timeMs: UInt64
    var receivedMs: UInt64
  }
}

extension NodeRow {
  /// The keys for this node's children.
  var parentKeys: ParentKeys { ParentKeys(key, keyGen: keyGen) }
}
