internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Fetches the records of versions that the verified log has replaced or deleted, and opens them.
///
/// The log decides what a version is: a record is accepted only under the hash that a commit has put for that node. A
/// server can withhold one; it cannot alter one, nor present one of another node or of another version.
struct FormerReader {
  let session: SyncSession

  /// A version as far as it could be read.
  struct Read: Sendable {
    var version: FormerVersion
    /// The record; nil if the server did not send it, or if it could not be opened.
    var opened: OpenedFormer?
    var state: KeptState
    /// Why a record that the server says it has cannot be read.
    var problem: ZDCSecurityError.Code?
  }

  /// Reads versions, in their order. Those that the server no longer keeps have neither a record nor a problem.
  func read(_ versions: [FormerVersion]) async throws -> [Read] {
    let all = try await session.database.asyncRead { try FormerKeys.needed(for: versions, $0) }
    var fetched: [RecordHash: PageContents.Record] = [:]
    var states: [RecordHash: KeptState] = [:]
    for (zone, versions) in Dictionary(grouping: all, by: \.zone) {
      guard let id = try await session.database.asyncRead({ try $0.zones.zone(id: zone)?.zone }) else { continue }
      fetched.merge(try await records(versions.map(\.expected.leaf), zone: id)) { first, _ in first }
      states.merge(try await kept(versions, zone: id)) { first, _ in first }
    }
    let (found, known) = (fetched, states)
    return try await session.database.asyncRead { transaction in
      var keys = FormerKeys(records: found, transaction)
      return try versions.map { version in
        try read(version, state: known[version.record] ?? .none, &keys)
      }
    }
  }

  private func read(_ version: FormerVersion, state: KeptState, _ keys: inout FormerKeys) throws -> Read {
    var read = Read(version: version, state: state)
    do {
      read.opened = try keys.open(version)
      // The server says that it has the record, and did not send it.
      if read.opened == nil, state.hasRecord { read.problem = .objectMissing }
    } catch let error as ZDCSecurityError { read.problem = error.code }
    return read
  }

  /// Fetches records by hash. Other bytes than those of a requested hash are dropped.
  func records(_ leaves: [LogNode], zone: ZoneID) async throws -> [RecordHash: PageContents.Record] {
    var found: [RecordHash: PageContents.Record] = [:]
    var rest = leaves[...]
    while !rest.isEmpty {
      let asked = rest.prefix(Limits.recordsPerRequest)
      guard let body = try await answer({ try await session.api.records(zone, Array(asked)) }) else {
        rest = rest.dropFirst(asked.count)
        continue
      }
      let hashes = Set(asked.map(\.record))
      let answer = try PageContents(body).records.filter { hashes.contains($0.key) }
      found.merge(answer) { first, _ in first }
      // An answer may stop early at its size limit. It is in the order of the request, so everything up to its last
      // record is answered.
      let answered = asked.lastIndex { answer[$0.record] != nil }.map { $0 + 1 - asked.startIndex }
      rest = rest.dropFirst(answered ?? asked.count)
    }
    return found
  }

  private func kept(_ versions: [FormerVersion], zone: ZoneID) async throws -> [RecordHash: KeptState] {
    var states: [RecordHash: KeptState] = [:]
    for start in stride(from: 0, to: versions.count, by: Limits.recordsPerRequest) {
      let asked = versions[start..<min(start + Limits.recordsPerRequest, versions.count)].map(\.expected.leaf)
      guard let answer = try await answer({ try await session.api.kept(zone, asked) }) else { continue }
      for (leaf, state) in zip(asked, answer) { states[leaf.record] = state }
    }
    return states
  }

  /// Returns nil if the server has none of it any more, or if the user no longer has access.
  private func answer<Value>(_ body: () async throws -> Value) async throws -> Value? {
    do { return try await body() } catch let error as ServerError where error.code == .gone || error.code == .notFound {
      return nil
    }
  }
}

/// The record of a version, opened.
struct OpenedFormer: Sendable {
  var item: PageContents.Record
  var opened: OpenedRecord

  /// What the node's row says about the content.
  var content: NodeRow.RemoteContent? {
    let fields = opened.record.fields
    guard let content = fields.content, let secrets = opened.secrets.content else { return nil }
    return NodeRow.RemoteContent(
      content: content, secrets: secrets, writer: fields.dataAuthor?.writer ?? fields.writer,
      timeMs: fields.dataAuthor?.timeMs ?? fields.timeMs, receivedMs: item.dataReceivedMs)
  }
}
