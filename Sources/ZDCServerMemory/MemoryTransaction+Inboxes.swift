internal import ZDCProtocol
internal import ZDCServer

/// The inbox of a zone.
struct MemoryInbox: Sendable {
  struct Envelope {
    var row: WaitingMessage
    var bytes: [UInt8]
  }

  var envelopes: [NodeID: Envelope] = [:]
  var senders: [UserID: SenderState] = [:]
}

// Messages that wait for their recipients.
extension MemoryTransaction {
  func envelopes(in inbox: ZoneKey, after cursor: UInt64, limit: Int) -> [WaitingMessage] {
    rows(of: inbox).filter { $0.cursor > cursor }.sorted { $0.cursor < $1.cursor }.prefix(limit).map { $0 }
  }

  func envelope(_ id: MessageID, from sender: UserID, in inbox: ZoneKey) -> [UInt8]? {
    tables.inboxes[inbox]?.envelopes[NodeID(message: id, from: sender)]?.bytes
  }

  func envelopeLengths(ofNodes nodes: [NodeID], in inbox: ZoneKey) -> [NodeID: Int] {
    envelopes(ofNodes: nodes, in: inbox).mapValues(\.count)
  }

  func envelopes(ofNodes nodes: [NodeID], in inbox: ZoneKey) -> [NodeID: [UInt8]] {
    nodes.reduce(into: [:]) { $0[$1] = tables.inboxes[inbox]?.envelopes[$1]?.bytes }
  }

  func inboxUsage(of inbox: ZoneKey, sender: UserID) -> InboxUsage {
    let rows = rows(of: inbox)
    func share(_ rows: [WaitingMessage]) -> InboxUsage.Share {
      InboxUsage.Share(count: rows.count, bytes: rows.reduce(0) { $0 + $1.length })
    }
    var usage = InboxUsage()
    usage.all = share(rows)
    usage.requests = share(rows.filter(\.isRequest))
    usage.sender = share(rows.filter { $0.sender == sender })
    return usage
  }

  func newestEnvelope(of user: UserID) -> UInt64? { inboxes(of: user).flatMap(rows).map(\.cursor).max() }

  func sender(_ user: UserID, of inbox: ZoneKey) -> SenderState { tables.inboxes[inbox]?.senders[user] ?? [] }

  func inboxCounts(of user: UserID) -> (envelopes: Int, bytes: UInt64, senders: Int) {
    let inboxes = inboxes(of: user)
    let rows = inboxes.flatMap(rows)
    return (
      rows.count, UInt64(rows.reduce(0) { $0 + $1.length }),
      inboxes.reduce(0) { $0 + (tables.inboxes[$1]?.senders.count ?? 0) }
    )
  }

  func shares(_ user: UserID, aZoneWith other: UserID) -> Bool {
    let accepted = (tables.memberships[user] ?? [:]).filter { $0.value.row.endedSeq == nil }.keys
    let own = tables.zones.filter { $0.value.owner == user }.keys
    return (Array(accepted) + Array(own)).contains { zone in
      member(other, of: zone).map { $0.leftSeq == nil } ?? false
    }
  }

  private func rows(of inbox: ZoneKey) -> [WaitingMessage] { tables.inboxes[inbox]?.envelopes.values.map(\.row) ?? [] }

  private func inboxes(of user: UserID) -> [ZoneKey] {
    tables.zones.filter { $0.value.owner == user && tables.inboxes[$0.key] != nil }.map(\.key)
  }
}

// Changes
extension MemoryTransaction {
  func insertEnvelope(_ envelope: MessageEnvelope, row: WaitingMessage, in inbox: ZoneKey) throws {
    try check(inbox)
    var row = row
    row.cursor = UInt64(tables.newKey())
    let node = NodeID(message: row.messageID, from: row.sender)
    tables.inboxes[inbox, default: MemoryInbox()].envelopes[node] = MemoryInbox.Envelope(
      row: row, bytes: envelope.bytes)
  }

  func removeEnvelopes(ofNodes nodes: [NodeID], in inbox: ZoneKey) throws {
    try check(inbox)
    for node in nodes { tables.inboxes[inbox]?.envelopes[node] = nil }
  }

  func setSender(_ user: UserID, to state: SenderState, of inbox: ZoneKey) throws {
    try check(inbox)
    tables.inboxes[inbox, default: MemoryInbox()].senders[user] = state.isEmpty ? nil : state
    guard state.contains(.accepted) else { return }
    for (node, envelope) in tables.inboxes[inbox]?.envelopes ?? [:] where envelope.row.sender == user {
      tables.inboxes[inbox]?.envelopes[node]?.row.isRequest = false
    }
  }

  func removeRequests(receivedBefore: UInt64, limit: Int) throws -> Bool {
    try check(.upkeep)
    var left = limit
    for (inbox, content) in tables.inboxes {
      let old = content.envelopes.filter { $0.value.row.isRequest && $0.value.row.receivedMs < receivedBefore }
      for node in old.keys.prefix(left) { tables.inboxes[inbox]?.envelopes[node] = nil }
      left -= min(left, old.count)
    }
    return left == 0
  }

  private func check(_ inbox: ZoneKey) throws {
    guard let zone = tables.zones[inbox]?.row.zone else { return }
    try check(.zone(zone))
  }
}
