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

  /// A subtree that crosses a zone boundary: the other zone, and the subtree's state root and size without the node
  /// itself.
  package struct Transfer: Sendable, Hashable {
    package var node: NodeID
    package var zone: ZoneID
    package var subtreeRoot: StateRoot
    package var count: UInt64

    package init(node: NodeID, zone: ZoneID, subtreeRoot: StateRoot, count: UInt64) {
      self.node = node
      self.zone = zone
      self.subtreeRoot = subtreeRoot
      self.count = count
    }
  }

  case put(Put)
  case delete(node: NodeID, record: RecordHash, liveDescendants: UInt64)
  case acl(version: UInt32, hash: ACLHash)
  case split(node: NodeID, genesis: CommitHash, count: UInt64)
  case moveOut(Transfer)
  case moveIn(Transfer)
  case checkpoint(stateRoot: StateRoot, count: UInt64, logRoot: StateRoot)
  case retireKey(user: UserID, gen: UInt32)
  case mount(node: NodeID, parent: NodeID)

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
    case 5: self = .moveOut(try Self.readTransfer(&reader))
    case 6: self = .moveIn(try Self.readTransfer(&reader))
    case 7:
      self = .checkpoint(
        stateRoot: try reader.read32(), count: try reader.readUInt64(), logRoot: try reader.read32())
    case 8: self = .retireKey(user: try reader.read32(), gen: try reader.readUInt32())
    case 9: self = .mount(node: try reader.read16(), parent: try reader.read16())
    default: throw ZDCSecurityError(.nonCanonicalEncoding)
    }
  }

  private static func readTransfer(_ reader: inout ByteReader) throws(ZDCSecurityError) -> Transfer {
    Transfer(
      node: try reader.read16(), zone: ZoneID(tree: try reader.read32(), root: try reader.read16()),
      subtreeRoot: try reader.read32(), count: try reader.readUInt64())
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
    case .moveOut(let transfer): transfer.write(kind: 5, to: &out)
    case .moveIn(let transfer): transfer.write(kind: 6, to: &out)
    case .checkpoint(let stateRoot, let count, let logRoot):
      out.append(UInt8(7))
      out.append(stateRoot)
      out.append(count)
      out.append(logRoot)
    case .retireKey(let user, let gen):
      out.append(UInt8(8))
      out.append(user)
      out.append(gen)
    case .mount(let node, let parent):
      out.append(UInt8(9))
      out.append(node)
      out.append(parent)
    }
  }
}

extension ZoneOperation.Transfer {
  func write(kind: UInt8, to out: inout ByteWriter) {
    out.append(kind)
    out.append(node)
    out.append(zone.tree)
    out.append(zone.root)
    out.append(subtreeRoot)
    out.append(count)
  }
}
