/// One operation of a commit (PROTOCOL 3.7).
package enum ZoneOperation: Sendable, Hashable {
  package struct Put: Sendable, Hashable {
    package var node: NodeID
    package var parent: NodeID
    package var record: RecordHash
    package var keyGen: UInt32
    package var parentKeyGen: UInt32

    package init(node: NodeID, parent: NodeID, record: RecordHash, keyGen: UInt32, parentKeyGen: UInt32) {
      self.node = node
      self.parent = parent
      self.record = record
      self.keyGen = keyGen
      self.parentKeyGen = parentKeyGen
    }

    /// Creates the operation that puts this record.
    package init(_ record: NodeRecord) {
      self.init(
        node: record.fields.node, parent: record.fields.parent, record: record.hash, keyGen: record.fields.keyGen,
        parentKeyGen: record.fields.parentKeyGen)
    }
  }

  /// The state with which a zone begins that was split off its parent zone.
  package struct GenesisState: Sendable, Hashable {
    /// The parent zone's head before the split.
    package var parentHead: CommitHash
    /// The Merkle root over the zone's ``StateList``.
    package var stateRoot: StateRoot
    /// The number of nodes in that list, including the zone's root.
    package var count: UInt64

    package init(parentHead: CommitHash, stateRoot: StateRoot, count: UInt64) {
      self.parentHead = parentHead
      self.stateRoot = stateRoot
      self.count = count
    }
  }

  case put(Put)
  case delete(node: NodeID, record: RecordHash, liveDescendants: UInt64)
  case acl(version: UInt32, hash: ACLHash)
  /// Splits a branch off. `count` is its number of nodes, including `node`, the root of the new zone.
  case split(node: NodeID, genesis: CommitHash, count: UInt64)
  case retireKey(user: UserID, gen: UInt32)
  case genesisState(GenesisState)

  init(_ reader: inout ByteReader) throws(ZDCSecurityError) {
    switch try reader.readUInt8() {
    case 1:
      self = .put(
        Put(
          node: try reader.read16(), parent: try reader.read16(), record: try reader.read32(),
          keyGen: try reader.readUInt32(), parentKeyGen: try reader.readUInt32()))
    case 2:
      self = .delete(
        node: try reader.read16(), record: try reader.read32(), liveDescendants: try reader.readUInt64())
    case 3: self = .acl(version: try reader.readUInt32(), hash: try reader.read32())
    case 4: self = .split(node: try reader.read16(), genesis: try reader.read32(), count: try reader.readUInt64())
    case 8: self = .retireKey(user: try reader.read32(), gen: try reader.readUInt32())
    case 10:
      self = .genesisState(
        GenesisState(
          parentHead: try reader.read32(), stateRoot: try reader.read32(), count: try reader.readUInt64()))
    default: throw ZDCSecurityError(.nonCanonicalEncoding)
    }
  }

  /// Returns the number of bytes after the kind; nil for a kind that does not exist. A reader that needs one operation
  /// of many skips the others with it.
  package static func length(ofKind kind: UInt8) -> Int? {
    switch kind {
    case 1, 10: 72
    case 2, 4: 56
    case 3, 8: 36
    default: nil
    }
  }

  func write(to out: inout ByteWriter) {
    switch self {
    case .put(let put):
      out.append(UInt8(1))
      out.append(put.node)
      out.append(put.parent)
      out.append(put.record)
      out.append(put.keyGen)
      out.append(put.parentKeyGen)
    case .delete(let node, let record, let liveDescendants):
      out.append(UInt8(2))
      out.append(node)
      out.append(record)
      out.append(liveDescendants)
    case .acl(let version, let hash):
      out.append(UInt8(3))
      out.append(version)
      out.append(hash)
    case .split(let node, let genesis, let count):
      out.append(UInt8(4))
      out.append(node)
      out.append(genesis)
      out.append(count)
    case .retireKey(let user, let gen):
      out.append(UInt8(8))
      out.append(user)
      out.append(gen)
    case .genesisState(let state):
      out.append(UInt8(10))
      out.append(state.parentHead)
      out.append(state.stateRoot)
      out.append(state.count)
    }
  }
}
