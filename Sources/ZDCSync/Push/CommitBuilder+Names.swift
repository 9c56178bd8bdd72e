internal import ZDCClientStore
internal import ZDCProtocol

// Names that the server cannot compare (PROTOCOL 3.7, "duplicateName").

extension CommitBuilder {
  /// A node that the commit puts, under the name that it gets.
  struct NamedPut {
    let row: Int64
    let parent: NodeID
    let name: [UInt8]
  }

  private struct Name: Hashable {
    let parent: NodeID
    let bytes: [UInt8]
  }

  /// Returns the nodes, by row, that this commit gives a name that another node has until its own delete or move is sent.
  ///
  /// The server refuses such a commit if the names' tags are equal. After a change of the parent's key they are not, and
  /// other devices would see two nodes with one name.
  func findNamesakes() throws -> Set<Int64> {
    guard !named.isEmpty, let keyGen = try leaves.leaf(zoneRow.zone.root)?.keyGen, keyGen > 1 else { return [] }
    let names = Set(try transaction.operations.leaving(zone: zoneRow.id, putBefore: keyGen).compactMap(nameInCloud))
    return Set(named.filter { names.contains(Name(parent: $0.parent, bytes: $0.name)) }.map(\.row))
  }

  /// Returns the name that a node keeps after this commit; nil if this device does not know it.
  private func nameInCloud(_ leaving: OperationRow) throws -> Name? {
    guard parents[leaving.nodeID] == nil, !removals.nodes.contains(leaving.nodeID),
      let leaf = try leaves.leaf(leaving.nodeID)
    else { return nil }
    guard leaving.kind != .delete else { return leaving.changeset.map { Name(parent: leaf.parent, bytes: $0) } }
    let row = try leaving.node.flatMap { try nodes.node(id: $0) }
    return row?.cloud.map { Name(parent: leaf.parent, bytes: $0.name) }
  }
}
