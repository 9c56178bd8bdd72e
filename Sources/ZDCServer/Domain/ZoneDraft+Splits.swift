internal import ZDCProtocol

/// A branch that a commit splits off.
struct ZoneDraftBranch {
  var top: NodeID
  var list: StateList
}

// Splits. A branch may have a million nodes, so nothing here visits them all, except to make the list.
extension ZoneDraft {
  func branch(_ node: NodeID, upTo limit: UInt64) throws -> [LogNode] {
    let below = try branch(below: node, nodes: Int(clamping: limit)).nodes
    return ([node] + below).compactMap(leaf)
  }

  func stateList(of node: NodeID, upTo limit: UInt64) throws -> StateList {
    if let list = snapshot.preparedList(of: node) { return list }
    return StateList(branch: try branch(node, upTo: limit), top: node)
  }

  mutating func splitOff(_ list: StateList, top: NodeID) throws { splitOff = ZoneDraftBranch(top: top, list: list) }

  mutating func insert(_ list: StateList) throws { state = list }

  /// The store removes the nodes later, step by step: a zone may have any number of them.
  mutating func close() throws {}

  /// The root of a zone that is split off continues the versions that it had.
  func checkSplitRoot(_ record: NodeRecord, previous: NodeRecord?) throws {
    guard state != nil, record.fields.node == part.commit.fields.zone.root else { return }
    guard let previous else { throw ZDCSecurityError(.objectMissing, node: record.fields.node) }
    try RecordRules.check(splitRoot: record, continuing: previous)
  }
}
