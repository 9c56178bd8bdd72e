package import ZDCProtocol

/// The target of a pointer node (PROTOCOL 3.6).
package struct PointerTarget: Sendable, Hashable {
  package var owner: UserID
  /// The zone that held the node at acceptance. A hint: the node may have become a zone since.
  package var zone: ZoneID
  package var node: NodeID
  /// The zone's genesis commit. A zone that begins differently is another one.
  package var genesis: CommitHash
  /// The zone's head at acceptance, which each later log contains.
  package var seq: UInt64
  package var head: CommitHash

  package init(owner: UserID, zone: ZoneID, node: NodeID, genesis: CommitHash, seq: UInt64, head: CommitHash) {
    self.owner = owner
    self.zone = zone
    self.node = node
    self.genesis = genesis
    self.seq = seq
    self.head = head
  }
}

/// The node from which another one was copied, in another zone or tree (PROTOCOL 3.6).
package struct MovedNode: Sendable, Hashable {
  package var tree: TreeID
  package var node: NodeID

  package init(tree: TreeID, node: NodeID) {
    self.tree = tree
    self.node = node
  }
}

/// Where a node of the inbox comes from (PROTOCOL 3.6).
package struct ReceivedMessage: Sendable, Hashable {
  package var sender: UserID
  /// The generation of the key that signed the message.
  package var senderGen: UInt32
  /// Names the sender's device.
  package var device: UInt64
  /// The message's number; 0 in the placeholder of a message that was burned before it came.
  package var seq: UInt64
  package var id: MessageID

  package init(sender: UserID, senderGen: UInt32, device: UInt64, seq: UInt64, id: MessageID) {
    self.sender = sender
    self.senderGen = senderGen
    self.device = device
    self.seq = seq
    self.id = id
  }

  package var isPlaceholder: Bool { seq == 0 }

  /// The message's node.
  package var node: NodeID { NodeID(message: id, from: sender) }
}

/// The private part of a node's record (PROTOCOL 3.6), before sealing.
package struct RecordPrivate: Sendable, Equatable {
  /// Folded UTF-8. Empty only in the root of a trunk.
  package var name: [UInt8]
  package var createdMs: UInt64
  package var pointer: PointerTarget?
  package var content: ContentSecrets?
  /// The recipients of a message.
  package var recipients: [UserID]
  /// The recipients who have received the message, in the order of `recipients`. Others are not stored.
  package var served: [UserID]
  /// The node that this one was copied from, when a move crossed the border of a zone.
  package var movedFrom: MovedNode?
  /// The device that sends an outgoing message, as its recipients know it.
  package var sendingDevice: UInt64?
  /// Where an incoming message comes from.
  package var received: ReceivedMessage?
  /// The name and the avatar of the user from whom the message comes. `received` has its version.
  package var profile: UserProfile?
  /// Whether the user has read the incoming message.
  package var isRead = false
  /// Extras of types that this version does not know. They are kept, and a record that has some is never overwritten.
  package var unknownExtras: [UnknownExtra] = []

  package struct UnknownExtra: Sendable, Equatable {
    package var type: UInt8
    package var value: [UInt8]

    package init(type: UInt8, value: [UInt8]) {
      self.type = type
      self.value = value
    }
  }

  package init(
    name: FoldedName?, createdMs: UInt64, pointer: PointerTarget? = nil, content: ContentSecrets? = nil,
    recipients: [UserID] = [], served: [UserID] = []
  ) {
    self.name = name?.utf8 ?? []
    self.createdMs = createdMs
    self.pointer = pointer
    self.content = content
    self.recipients = recipients
    self.served = served
  }

  private enum Extra: UInt8 {
    case recipients = 1
    case served = 2
    case movedFrom = 3
    case sendingDevice = 4
    case received = 5
    case profile = 6
    case read = 7
  }

  private static let padding = 32

  /// The padded plaintext.
  package var bytes: [UInt8] {
    var out = ByteWriter(capacity: 160 + name.count + (profile?.avatar.count ?? 0))
    out.append(UInt8(1))
    out.append16(name)
    out.append(createdMs)
    out.append(pointer != nil)
    if let pointer { pointer.write(to: &out) }
    if let content { content.write(to: &out) }
    let extras = (knownExtras + unknownExtras).sorted { $0.type < $1.type }
    out.append(UInt16(extras.count))
    for extra in extras {
      out.append(extra.type)
      out.append16(extra.value)
    }
    let fill = (Self.padding - out.bytes.count % Self.padding) % Self.padding
    out.append(zeros: fill)
    return out.bytes
  }

  private var knownExtras: [UnknownExtra] {
    var extras: [UnknownExtra] = []
    func add(_ type: Extra, _ value: [UInt8]?) {
      if let value, !value.isEmpty { extras.append(UnknownExtra(type: type.rawValue, value: value)) }
    }
    add(.recipients, recipients.flatMap(\.bytes))
    add(.served, servedBits)
    add(.movedFrom, movedFrom.map { $0.tree.bytes + $0.node.bytes })
    add(.sendingDevice, sendingDevice.map { withUnsafeBytes(of: $0.bigEndian, Array.init) })
    add(.received, received?.bytes)
    add(.profile, profile?.bytes)
    add(.read, isRead ? [1] : nil)
    return extras
  }

  /// One bit for each recipient, in their order, the first in the lowest bit; nil if no recipient was served.
  private var servedBits: [UInt8]? {
    let served = Set(served)
    var bits = [UInt8](repeating: 0, count: (recipients.count + 7) / 8)
    for (index, user) in recipients.enumerated() where served.contains(user) { bits[index / 8] |= 1 << (index % 8) }
    return bits.allSatisfy { $0 == 0 } ? nil : bits
  }

  /// Decodes the padded plaintext. The record's flag determines whether it has content fields.
  package init(_ bytes: [UInt8], hasContent: Bool) throws(ZDCSecurityError) {
    try require(bytes.count <= Limits.recordPrivateBytes, .limitExceeded)
    try require(bytes.count % Self.padding == 0, .nonCanonicalEncoding)
    var reader = ByteReader(bytes)
    try require(try reader.readUInt8() == 1, .unsupportedVersion)
    name = Array(try reader.readVariable16(limit: Limits.nameBytes))
    createdMs = try reader.readUInt64()
    pointer = try reader.readBool() ? try PointerTarget(&reader) : nil
    content = hasContent ? try ContentSecrets(&reader) : nil
    recipients = []
    served = []
    try readExtras(&reader)
    let rest = reader.remaining
    let isPadding = try reader.read(count: rest).allSatisfy { $0 == 0 }
    try require(isPadding && rest < Self.padding, .nonCanonicalEncoding)
  }

  private mutating func readExtras(_ reader: inout ByteReader) throws(ZDCSecurityError) {
    var last: UInt8 = 0
    for _ in 0..<(try reader.readUInt16()) {
      let type = try reader.readUInt8()
      try require(type > last, .nonCanonicalEncoding)
      last = type
      let value = try reader.readVariable16()
      switch Extra(rawValue: type) {
      case .recipients: recipients = try Self.readUsers(value)
      case .served: try readServed(value)
      case .movedFrom: movedFrom = try MovedNode(value)
      case .sendingDevice: sendingDevice = try Self.readDevice(value)
      case .received: received = try ReceivedMessage(value)
      case .profile: profile = try UserProfile(value)
      case .read: isRead = try Self.readFlag(value)
      case nil: unknownExtras.append(UnknownExtra(type: type, value: Array(value)))
      }
    }
  }

  private static func readDevice(_ field: ArraySlice<UInt8>) throws(ZDCSecurityError) -> UInt64 {
    var reader = ByteReader(field)
    let device = try reader.readUInt64()
    try reader.finish()
    return device
  }

  private static func readFlag(_ field: ArraySlice<UInt8>) throws(ZDCSecurityError) -> Bool {
    try require(field.elementsEqual([1]), .nonCanonicalEncoding)
    return true
  }

  /// Reads the recipients who were served. The recipients come before, in the order of the extras.
  private mutating func readServed(_ field: ArraySlice<UInt8>) throws(ZDCSecurityError) {
    let bits = Array(field)
    try require(bits.count == (recipients.count + 7) / 8, .nonCanonicalEncoding)
    served = recipients.enumerated().filter { index, _ in bits[index / 8] & 1 << (index % 8) != 0 }.map(\.element)
    try require(servedBits == bits, .nonCanonicalEncoding)
  }

  private static func readUsers(_ field: ArraySlice<UInt8>) throws(ZDCSecurityError) -> [UserID] {
    try require(!field.isEmpty && field.count % 32 == 0, .nonCanonicalEncoding)
    var reader = ByteReader(field)
    var users: [UserID] = []
    while reader.remaining > 0 { users.append(try reader.read32()) }
    return users
  }
}

extension RecordPrivate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<record private>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}

extension PointerTarget {
  package init(_ reader: inout ByteReader) throws(ZDCSecurityError) {
    owner = try reader.read32()
    zone = ZoneID(tree: try reader.read32(), root: try reader.read16())
    node = try reader.read16()
    genesis = try reader.read32()
    seq = try reader.readUInt64()
    head = try reader.read32()
  }

  package func write(to out: inout ByteWriter) {
    out.append(owner)
    out.append(zone.tree)
    out.append(zone.root)
    out.append(node)
    out.append(genesis)
    out.append(seq)
    out.append(head)
  }
}

extension MovedNode {
  fileprivate init(_ field: ArraySlice<UInt8>) throws(ZDCSecurityError) {
    var reader = ByteReader(field)
    tree = try reader.read32()
    node = try reader.read16()
    try reader.finish()
  }
}

extension ReceivedMessage {
  fileprivate init(_ field: ArraySlice<UInt8>) throws(ZDCSecurityError) {
    var reader = ByteReader(field)
    sender = try reader.read32()
    senderGen = try reader.readUInt32()
    device = try reader.readUInt64()
    seq = try reader.readUInt64()
    id = try reader.read16()
    try reader.finish()
  }

  fileprivate var bytes: [UInt8] {
    var out = ByteWriter(capacity: 68)
    out.append(sender)
    out.append(senderGen)
    out.append(device)
    out.append(seq)
    out.append(id)
    return out.bytes
  }
}

extension ContentSecrets {
  init(_ reader: inout ByteReader) throws(ZDCSecurityError) {
    guard let key = ContentKey(try reader.read(count: 32)) else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    self.key = key
    let data = try reader.readUInt64()
    sizes = ContentSizes(metadata: try reader.readUInt32(), thumbnail: try reader.readUInt32(), data: data)
    thumbnailTag = try reader.read16()
  }

  func write(to out: inout ByteWriter) {
    out.append(contentsOf: key.exportBytes())
    out.append(sizes.data)
    out.append(sizes.metadata)
    out.append(sizes.thumbnail)
    out.append(thumbnailTag)
  }
}
