internal import ZDCProtocol

/// `GET /v1/account/audit`: every field that the server stores for a user. A new column needs a line here.
enum Audit {
  static func report(for id: UserID, quotas: Quotas, now: UInt64, in reader: any MetadataReader) throws -> AuditReport {
    guard let user = try reader.user(id) else { throw ServerError(.unauthorized, "no such session") }
    return AuditReport(sections: [
      try account(user, in: reader), try devices(of: id, in: reader), try sessions(of: id, now: now, in: reader),
      try trees(of: id, in: reader), try zones(of: id, in: reader),
      try stored(for: id, quota: quotas.forAccount(id, reader).limit, in: reader),
      try followed(by: id, in: reader), try lists(of: id, in: reader),
      try mailbox(of: id, in: reader),
    ])
  }

  private static func account(_ user: UserRow, in reader: any MetadataReader) throws -> AuditReport.Section {
    let keyring = try reader.keyring(of: user.id)?.count ?? 0
    let handles = try reader.handles(of: user.id)
    return section(
      "account",
      [
        ("user id", user.id.text), ("lookup id", user.lookup.text), ("login public key", hexadecimal(user.loginKey)),
        ("identity links", "\(user.linkSeq + 1)"), ("last link", user.linkHead.text),
        ("signature key generation", "\(user.signGen)"), ("decryption key generation", "\(user.encGen)"),
        ("sealed keyring, bytes", "\(keyring)"),
        ("handle", handles.first { $0.releasedMs == nil }?.handle.text ?? "none"),
        (
          "handle given up, still reserved",
          handles.first { $0.releasedMs != nil }.map { "\($0.handle.text), \($0.releasedMs ?? 0)" } ?? "none"
        ),
        ("closed", user.closedMs.map { "\($0)" } ?? "no"), ("created", "\(user.createdMs)"),
        ("suspended by the operator", user.suspendedMs.map { "\($0)" } ?? "no"),
        ("quota set by the operator, bytes", user.quotaBytes.map { "\($0)" } ?? "no"),
      ])
  }

  private static func devices(of user: UserID, in reader: any MetadataReader) throws -> AuditReport.Section {
    section(
      "devices",
      try reader.devices(of: user).map { device in
        (device.id.text, "public key \(hexadecimal(device.key)), since \(device.createdMs)")
      })
  }

  private static func sessions(
    of user: UserID, now: UInt64, in reader: any MetadataReader
  ) throws -> AuditReport.Section {
    section(
      "sessions",
      try reader.sessions(of: user).map { session in
        (
          session.device.text,
          "hash of token \(hexadecimal(session.tokenHash)), from \(session.createdMs) to \(session.expiresMs)"
        )
      })
  }

  private static func trees(of user: UserID, in reader: any MetadataReader) throws -> AuditReport.Section {
    section(
      "trees", try reader.trees(of: user).map { tree in ("\(tree.appTreeID), \(tree.trunk)", tree.tree.text) })
  }

  private static func zones(of user: UserID, in reader: any MetadataReader) throws -> AuditReport.Section {
    section(
      "zones",
      try reader.zones(of: user, since: nil).own.map { zone in
        ("\(zone.treeID.text)/\(zone.zoneRoot.text)", "\(zone.seq + 1) commits, head \(zone.head.text)")
      })
  }

  private static func followed(by user: UserID, in reader: any MetadataReader) throws -> AuditReport.Section {
    section(
      "accepted zones of others",
      try reader.memberships(of: user).map { membership in
        let end = membership.endedSeq.map { ", access ended with commit \($0)" } ?? ""
        let zone = membership.zone
        return ("\(zone.tree.text)/\(zone.root.text)", "accepted \(membership.acceptedMs)\(end)")
      })
  }

  /// Counting more would make the report of a user whom many lists name expensive.
  private static let countedMembers = 10_000

  private static func lists(of user: UserID, in reader: any MetadataReader) throws -> AuditReport.Section {
    let counts = try reader.memberCounts(of: user, limit: countedMembers + 1)
    func text(_ count: Int) -> String { count > countedMembers ? "more than \(countedMembers)" : "\(count)" }
    return section(
      "access lists",
      [
        ("zones that name this user, own ones included", text(counts.listed)),
        ("zones that this user was removed from (and by which commit)", text(counts.removed)),
        ("members of own zones (id, permissions, key generation, since when)", text(counts.members)),
        ("former members of own zones", text(counts.formerMembers)),
      ])
  }

  private static func mailbox(of user: UserID, in reader: any MetadataReader) throws -> AuditReport.Section {
    let counts = try reader.inboxCounts(of: user)
    return section(
      "mailbox",
      [
        (
          "waiting messages (sender, id, node id, length, when received, whether the sender is known)",
          "\(counts.envelopes)"
        ),
        ("waiting messages, bytes", "\(counts.bytes)"),
        ("users who have written, are accepted or blocked", "\(counts.senders)"),
      ])
  }

  private static func stored(
    for user: UserID, quota: UInt64, in reader: any MetadataReader
  ) throws -> AuditReport.Section {
    let usage = try reader.usage(of: user)
    return section(
      "stored in own trees",
      [
        ("own zones that are closed (and when)", "\(usage.closedZones)"),
        ("live nodes (id, parent id, tag of the name, key generations)", "\(usage.liveNodes)"),
        ("signed commits", "\(usage.commits)"), ("sealed records", "\(usage.records)"),
        ("sealed records, bytes", "\(usage.recordBytes)"),
        ("signed commits, access lists, grants and lists of nodes that were split off, bytes", "\(usage.logBytes)"),
        ("sealed contents", "\(usage.blobs)"),
        ("sealed contents, bytes", "\(usage.contentBytes)"),
        ("own uploads that no node has yet, bytes", "\(usage.uploadBytes)"),
        ("quota, bytes", quota == 0 ? "unlimited" : "\(quota)"),
      ])
  }

  private static func section(_ title: String, _ fields: [(String, String)]) -> AuditReport.Section {
    AuditReport.Section(title: title, fields: fields.map { AuditReport.Field(name: $0.0, value: $0.1) })
  }
}
