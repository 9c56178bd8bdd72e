import ZDCProtocol

@testable import ZDCCrypto

extension VectorCases {
  /// A record, and the one that it replaces.
  private struct Versions {
    let old: NodeRecord
    var next: NodeRecord.Fields

    init(_ first: NodeRecord.Fields) {
      old = NodeRecord(first)
      next = first
      (next.recordVersion, next.prevRecord) = (first.recordVersion + 1, old.hash)
    }
  }

  mutating func addPuts() throws {
    var first = world.home.root.fields
    (first.node, first.parent, first.commitments) = (NodeID(high: 1, low: 1), first.node, nil)
    first.parentKeyGen = 1
    addVersions(Versions(first))
    first.content = NodeRecord.Content(
      dataVersion: 7, blobID: BlobID(high: 1, low: 1), cipherLength: 200, contentRoot: ContentRoot(1, 2, 3, 4))
    addContentVersions(Versions(first))
    first.content?.dataVersion = 1 << 63
    add("put-first-data", "put", "content of a new node, with the largest version", members(NodeRecord(first)))
    first.content?.dataVersion += 1
    add(
      "put-first-data-limit", "put", "content of a new node, with a version above the limit", expect: .limitExceeded,
      members(NodeRecord(first)))
    first.content = nil
    first.recordVersion = 2
    add("put-first-version", "put", "a new node of version 2", expect: .recordRollback, members(NodeRecord(first)))
  }

  private func members(_ record: NodeRecord, after old: NodeRecord? = nil) -> [String: VectorValue] {
    var members = ["record": VectorValue(record.bytes), "recordHash": VectorValue(record.hash.bytes)]
    if let old { members["previous"] = VectorValue(old.bytes) }
    return members
  }

  private mutating func addPut(
    _ name: String, _ about: String, expect code: ZDCSecurityError.Code? = nil, _ versions: Versions,
    _ change: (inout NodeRecord.Fields) -> Void
  ) {
    var next = versions.next
    change(&next)
    add("put-\(name)", "put", about, expect: code?.rawValue ?? "ok", members(NodeRecord(next), after: versions.old))
  }

  private mutating func addVersions(_ versions: Versions) {
    let old = versions.old
    addPut("jump", "the largest rise of a record's version", versions) { $0.recordVersion = 1 + (1 << 32) }
    addPut("jump-limit", "a rise by 2^32 + 1", expect: .limitExceeded, versions) {
      $0.recordVersion = 2 + (1 << 32)
    }
    addPut("same-version", "the version of the record before", expect: .recordRollback, versions) {
      $0.recordVersion = old.fields.recordVersion
    }
    addPut("other-record", "made for another record before", expect: .recordRollback, versions) {
      $0.prevRecord = RecordHash(1, 2, 3, 4)
    }
    let content = NodeRecord.Content(
      dataVersion: 1 + (1 << 32), blobID: BlobID(high: 1, low: 1), cipherLength: 200, contentRoot: .zero)
    addPut("content-limit", "first content counts from 0", expect: .limitExceeded, versions) { $0.content = content }
  }

  private mutating func addContentVersions(_ versions: Versions) {
    let other = BlobID(high: 2, low: 2)
    addPut("data-jump", "the largest rise of the content's version", versions) {
      $0.content?.dataVersion = 7 + (1 << 32)
      $0.content?.blobID = other
    }
    addPut("data-jump-limit", "content that rises by 2^32 + 1", expect: .limitExceeded, versions) {
      $0.content?.dataVersion = 8 + (1 << 32)
      $0.content?.blobID = other
    }
    addPut("data-older", "an older version of the content", expect: .recordRollback, versions) {
      $0.content?.dataVersion = 6
      $0.content?.blobID = other
    }
    addPut("data-same-blob", "a new version of the content in the same blob", expect: .recordRollback, versions) {
      $0.content?.dataVersion = 8
    }
    addPut("data-gone", "content that disappears", expect: .recordRollback, versions) { $0.content = nil }
  }
}
