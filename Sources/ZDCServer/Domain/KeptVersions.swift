internal import ZDCProtocol

/// Tells a member which replaced and deleted versions are still stored, and until when (PROTOCOL 4.4).
struct KeptVersions {
  let zone: ZoneRow
  let member: MemberRow
  let retentionMs: UInt64
  let reader: any MetadataReader

  init(zone id: ZoneID, user: UserID, retentionMs: UInt64, in reader: any MetadataReader) throws {
    (zone, member) = try Access.reader(id, user, in: reader)
    (self.retentionMs, self.reader) = (retentionMs, reader)
  }

  /// Returns the state of each version, in the order requested. A version that was replaced before the user was a member
  /// is answered like one that is not stored.
  func states(_ names: [RecordName]) throws -> [KeptState] {
    let records = try Zones.parts(of: names).flatMap { part in
      let stored = try reader.records(Array(part), in: zone.key)
      return try part.map { try found(stored[$0]) }
    }
    let contents = try contents(of: zip(names, records).map { name, found in (name.node, found?.content) })
    return zip(records, contents).map { found, hasContent in
      guard let found else { return .none }
      let untilMs = found.replacedMs.map { $0.addingReportingOverflow(retentionMs).partialValue } ?? 0
      return KeptState(hasRecord: true, hasContent: hasContent, untilMs: untilMs)
    }
  }

  private struct Found {
    var content: BlobID?
    var replacedMs: UInt64?
  }

  /// Returns nil also for a damaged record: it cannot be served.
  private func found(_ stored: Result<StoredRecord, RecordDamaged>?) throws -> Found? {
    guard case .success(let stored)? = stored, member.mayRead(replacedMs: stored.replacedMs) else { return nil }
    return Found(
      content: try NodeRecord(stored.bytes).fields.content?.blobID, replacedMs: stored.replacedMs)
  }

  /// Returns whether each content is stored, in one query for all of them.
  private func contents(of nodes: [(node: NodeID, blob: BlobID?)]) throws -> [Bool] {
    let names = nodes.map { node, blob in blob.map { ContentName(node: node, blob: $0) } }
    let known = try reader.contents(names.compactMap(\.self), in: zone.zone.tree)
    return names.map { name in
      guard let name, let blob = known[name] else { return false }
      return blob.node == name.node && blob.zone == zone.key && blob.state == .attached
        && member.mayRead(replacedMs: blob.replacedMs)
    }
  }
}
