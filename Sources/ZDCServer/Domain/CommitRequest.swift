internal import ZDCProtocol

/// The body of `POST /v1/commits`, parsed and checked as far as possible without the store.
package struct CommitRequest: Sendable {
  package struct ZonePart: Sendable {
    var commit: ZoneCommit
    /// The access list that the commit's acl operation names; nil without such an operation.
    var acl: ZoneACL?
    var grants: [Grant] = []
    var records: [RecordHash: NodeRecord] = [:]

    /// The bytes that the part adds to the zone.
    func byteCount(with contents: [BlobID: InlineContent]) -> Int {
      let listBytes = (acl?.bytes.count ?? 0) + grants.reduce(0) { $0 + $1.bytes.count }
      return records.values.reduce(commit.bytes.count + listBytes) { count, record in
        let content = record.fields.content.flatMap { contents[$0.blobID]?.bytes.count }
        return count + record.bytes.count + (content ?? 0)
      }
    }
  }

  struct InlineContent: Sendable {
    var bytes: ArraySlice<UInt8>
    var root: ContentRoot
  }

  /// In zone-id order, the order in which zones are compared and changed.
  let parts: [ZonePart]
  let contents: [BlobID: InlineContent]
  /// Where content is that other nodes have and this request attaches to its own.
  let sources: [BlobID: AttachedContent]

  /// The zones, and the uploads that their puts may attach.
  package var subjects: Set<WriteSubject> {
    var subjects: Set<WriteSubject> = []
    for part in parts {
      subjects.insert(.zone(part.commit.fields.zone))
      for record in part.records.values {
        guard let blob = record.fields.content?.blobID, contents[blob] == nil, sources[blob] == nil else { continue }
        subjects.insert(.upload(blob))
      }
    }
    return subjects
  }

  package init(_ body: [UInt8]) throws {
    guard body.count <= Limits.commitRequestBytes else {
      throw ServerError(.limitExceeded, "the request is longer than \(Limits.commitRequestBytes) bytes")
    }
    var builder = Builder()
    var reader = Bundle.Reader(body)
    while let item = try reader.next() { try builder.add(item) }
    parts = try builder.finish()
    contents = builder.contents
    sources = builder.sources
  }

  private struct Builder {
    var parts: [ZonePart] = []
    var contents: [BlobID: InlineContent] = [:]
    var sources: [BlobID: AttachedContent] = [:]
    private var acl: ZoneACL?
    private var grants: [Grant] = []
    private var records: [RecordHash: NodeRecord] = [:]

    mutating func add(_ item: Bundle.Item) throws {
      switch item {
      case .content(let blob, let bytes): try add(bytes, as: blob)
      case .acl(let list):
        guard acl == nil else { throw invalid("two access lists for one commit") }
        acl = list
      case .grant(let grant): grants.append(grant)
      case .record(_, _, let record): records[record.hash] = record
      case .commit(_, let commit): try close(commit)
      case .attach(let source): try add(source)
      case .link, .leaves, .aclEdit, .envelope: throw invalid("an item that does not belong in a commit request")
      }
    }

    private mutating func add(_ bytes: ArraySlice<UInt8>, as blob: BlobID) throws {
      guard contents[blob] == nil, sources[blob] == nil else { throw invalid("the same content twice") }
      // Inline content has at most 64 KiB and thus one leaf, whose hash is the root.
      let root = ContentRoot(reinterpreting: MerkleTree.leafHash(bytes))
      contents[blob] = InlineContent(bytes: bytes, root: root)
    }

    private mutating func add(_ source: AttachedContent) throws {
      guard contents[source.blob] == nil, sources.updateValue(source, forKey: source.blob) == nil else {
        throw invalid("the same content twice")
      }
    }

    private mutating func close(_ commit: ZoneCommit) throws {
      let zone = commit.fields.zone
      guard parts.count < Limits.zonesPerRequest else { throw ZDCSecurityError(.tooManyZones, zone: zone) }
      guard !parts.contains(where: { $0.commit.fields.zone == zone }) else { throw invalid("the same zone twice") }
      try checkRecords(of: commit)
      try checkACL(of: commit)
      parts.append(ZonePart(commit: commit, acl: acl, grants: grants, records: records))
      acl = nil
      grants = []
      records = [:]
    }

    /// Checks that every put comes with its record, and every record with a put.
    private func checkRecords(of commit: ZoneCommit) throws {
      var puts = 0
      for case .put(let put) in commit.fields.operations {
        guard records[put.record] != nil else { throw ZDCSecurityError(.objectMissing, node: put.node) }
        puts += 1
      }
      guard puts == records.count else { throw invalid("a record that no put operation names") }
    }

    /// Checks that an access list comes with the operation that names it, and a grant with a list. Replay ignores a
    /// list that no operation names, so no later check would verify it.
    private func checkACL(of commit: ZoneCommit) throws {
      let hasOperation = commit.fields.operations.contains { if case .acl = $0 { true } else { false } }
      guard (acl != nil) == hasOperation else {
        throw invalid("an access list needs an acl operation, and an acl operation an access list")
      }
      guard hasOperation || grants.isEmpty else { throw invalid("a grant without an access list") }
    }

    func finish() throws -> [ZonePart] {
      guard acl == nil, grants.isEmpty, records.isEmpty else { throw invalid("items after the last commit") }
      guard !parts.isEmpty else { throw invalid("no commit") }
      return parts.sorted { $0.commit.fields.zone < $1.commit.fields.zone }
    }

    private func invalid(_ message: String) -> ServerError { ServerError(.invalidRequest, message) }
  }
}
