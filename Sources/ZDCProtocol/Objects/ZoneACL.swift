/// The access list of a zone (PROTOCOL 3.9). Its versions form a hash chain, and each is signed by its writer.
package struct ZoneACL: Sendable, Hashable {
  package struct Permissions: OptionSet, Sendable, Hashable {
    package let rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }
    package static let read = Permissions(rawValue: 1)
    package static let write = Permissions(rawValue: 2)
    package static let share = Permissions(rawValue: 4)
    /// Puts no record with content.
    package static let recordsOnly = Permissions(rawValue: 8)
    /// Puts and deletes only nodes directly below the zone's root.
    package static let leafsOnly = Permissions(rawValue: 16)
    /// Puts and deletes only the node that ``NodeID/child(of:for:)`` derives.
    package static let userOnly = Permissions(rawValue: 32)
    /// Puts only new nodes, and deletes nothing.
    package static let writeOnce = Permissions(rawValue: 64)
    /// With ``writeOnce``: deletes a node that the member put, as long as it has no children.
    package static let burnIfSender = Permissions(rawValue: 128)
    /// The permissions that widen what a member may do; the others narrow ``write``.
    static let widening: Permissions = [.read, .write, .share]
    static let narrowing: Permissions = [.recordsOnly, .leafsOnly, .userOnly, .writeOnce, .burnIfSender]
    static let known: UInt16 = 255

    /// Whether a member with these permissions may give others. Permissions that only narrow need not be their own.
    package func mayGive(_ others: Permissions) -> Bool { isSuperset(of: others.intersection(.widening)) }

    /// Whether a member may put and delete any node.
    package var writesFreely: Bool { contains(.write) && isDisjoint(with: .narrowing) }

    /// Whether a list may give a member exactly these permissions.
    package var isCombination: Bool {
      let combinations: [Permissions] = [[.read], [.read, .write], [.read, .write, .share]]
      guard combinations.contains(intersection(.widening)) else { return false }
      let narrowing = intersection(.narrowing)
      guard !narrowing.isEmpty else { return true }
      return contains(.write) && !contains(.share) && (!contains(.burnIfSender) || contains(.writeOnce))
    }
  }

  /// The kind of key in a member's wrap. Other kinds are reserved.
  package enum WrapKind: UInt8, Sendable, Hashable {
    case nodeKey = 1
  }

  package struct Entry: Sendable, Hashable {
    package var user: UserID
    package var permissions: Permissions
    package var encGen: UInt32
    package var wrapKind: WrapKind
    package var wrapHash: GrantHash

    package init(user: UserID, permissions: Permissions, encGen: UInt32, wrapKind: WrapKind, wrapHash: GrantHash) {
      self.user = user
      self.permissions = permissions
      self.encGen = encGen
      self.wrapKind = wrapKind
      self.wrapHash = wrapHash
    }
  }

  package struct Fields: Sendable, Hashable {
    package var zone: ZoneID
    package var owner: UserID
    package var trunk: Trunk
    package var appTreeID: String
    package var version: UInt32
    package var prev: ACLHash
    /// Reserved: false in this version.
    package var parentLinked: Bool
    package var minProtocol: UInt8
    package var zoneKeyGen: UInt32
    package var commitments: NodeRecord.ZoneCommitments
    /// The older generations of the zone's key, sealed under the newest. Empty in generation 1.
    package var historyWrap: [UInt8]
    /// Sorted by user.
    package var entries: [Entry]
    package var writer: UserID
    package var writerGen: UInt32
    package var timeMs: UInt64

    package init(
      zone: ZoneID, owner: UserID, trunk: Trunk, appTreeID: String, version: UInt32, prev: ACLHash,
      parentLinked: Bool, minProtocol: UInt8 = 1, zoneKeyGen: UInt32, commitments: NodeRecord.ZoneCommitments,
      historyWrap: [UInt8] = [], entries: [Entry], writer: UserID, writerGen: UInt32, timeMs: UInt64
    ) {
      self.zone = zone
      self.owner = owner
      self.trunk = trunk
      self.appTreeID = appTreeID
      self.version = version
      self.prev = prev
      self.parentLinked = parentLinked
      self.minProtocol = minProtocol
      self.zoneKeyGen = zoneKeyGen
      self.commitments = commitments
      self.historyWrap = historyWrap
      self.entries = entries
      self.writer = writer
      self.writerGen = writerGen
      self.timeMs = timeMs
    }

    /// The bytes that the signature covers, under the label "acl".
    package var unsignedBytes: [UInt8] {
      var out = ByteWriter(magic: "ZDAC", capacity: 322 + historyWrap.count + entries.count * 71)
      out.append(zone.tree)
      out.append(zone.root)
      out.append(owner)
      out.append(trunk.rawValue)
      out.append16(Array(appTreeID.utf8))
      out.append(version)
      out.append(prev)
      out.append(parentLinked)
      out.append(minProtocol)
      out.append(zoneKeyGen)
      out.append(commitments.node)
      out.append(commitments.content)
      out.append16(historyWrap)
      out.append(UInt16(entries.count))
      for entry in entries { entry.write(to: &out) }
      out.append(writer)
      out.append(writerGen)
      out.append(timeMs)
      return out.bytes
    }

    package func entry(for user: UserID) -> Entry? {
      entries.first { $0.user == user }
    }
  }

  package static let signatureBytes = 64

  package let fields: Fields
  package let signature: [UInt8]
  package let bytes: [UInt8]
  package let hash: ACLHash

  package init(_ fields: Fields, sign: ([UInt8]) throws -> [UInt8]) rethrows {
    let unsigned = fields.unsignedBytes
    signature = try sign(unsigned)
    self.fields = fields
    bytes = unsigned + signature
    hash = ACLHash(labelledHash: "acl", bytes)
  }

  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    try require(bytes.count <= Limits.aclBytes, .limitExceeded)
    var reader = ByteReader(bytes)
    fields = try Self.readFields(&reader)
    signature = Array(try reader.read(count: Self.signatureBytes))
    try reader.finish()
    self.bytes = bytes
    hash = ACLHash(labelledHash: "acl", bytes)
  }

  package var signedBytes: ArraySlice<UInt8> { bytes.dropLast(Self.signatureBytes) }

  private static func readFields(_ reader: inout ByteReader) throws(ZDCSecurityError) -> Fields {
    try reader.readPreamble(magic: "ZDAC")
    let zone = ZoneID(tree: try reader.read32(), root: try reader.read16())
    let owner: UserID = try reader.read32()
    guard let trunk = Trunk(rawValue: try reader.readUInt8()) else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    let appTreeID = try readAppTreeID(&reader)
    var fields = Fields(
      zone: zone, owner: owner, trunk: trunk, appTreeID: appTreeID, version: try reader.readUInt32(),
      prev: try reader.read32(), parentLinked: try reader.readBool(), minProtocol: try reader.readUInt8(),
      zoneKeyGen: try reader.readUInt32(),
      commitments: NodeRecord.ZoneCommitments(node: try reader.read32(), content: try reader.read32()),
      historyWrap: Array(try reader.readVariable16(limit: Limits.historyWrapBytes)), entries: [], writer: .zero,
      writerGen: 0, timeMs: 0)
    try require(fields.minProtocol == 1 && !fields.parentLinked, .unsupportedVersion)
    try require(fields.historyWrap.isEmpty || fields.zoneKeyGen > 1, .nonCanonicalEncoding)
    fields.entries = try readEntries(&reader)
    fields.writer = try reader.read32()
    fields.writerGen = try reader.readUInt32()
    fields.timeMs = try reader.readUInt64()
    return fields
  }

  private static func readAppTreeID(_ reader: inout ByteReader) throws(ZDCSecurityError) -> String {
    let field = try reader.readVariable16()
    let text = String(decoding: field, as: UTF8.self)
    // Decoding repairs invalid UTF-8, so a repaired string differs from its bytes.
    try require(text.utf8.elementsEqual(field) && AppTreeID.isValid(text), .nonCanonicalEncoding)
    return text
  }

  private static func readEntries(_ reader: inout ByteReader) throws(ZDCSecurityError) -> [Entry] {
    let count = Int(try reader.readUInt16())
    try require(count <= Limits.aclEntries, .limitExceeded)
    var entries: [Entry] = []
    for _ in 0..<count {
      let entry = try Entry(&reader)
      try require(entries.last.map { $0.user < entry.user } ?? true, .nonCanonicalEncoding)
      entries.append(entry)
    }
    return entries
  }
}

extension ZoneACL.Entry {
  init(_ reader: inout ByteReader) throws(ZDCSecurityError) {
    user = try reader.read32()
    permissions = ZoneACL.Permissions(rawValue: try reader.readUInt16())
    encGen = try reader.readUInt32()
    guard let kind = ZoneACL.WrapKind(rawValue: try reader.readUInt8()) else {
      throw ZDCSecurityError(.unsupportedVersion)
    }
    wrapKind = kind
    wrapHash = try reader.read32()
    try require(permissions.rawValue & ~ZoneACL.Permissions.known == 0, .unsupportedVersion)
    try require(permissions.isCombination && encGen >= 1, .nonCanonicalEncoding)
  }

  func write(to out: inout ByteWriter) {
    out.append(user)
    out.append(permissions.rawValue)
    out.append(encGen)
    out.append(wrapKind.rawValue)
    out.append(wrapHash)
  }
}

/// The name of an app's tree: 8 to 64 characters of `0-9 A-Z a-z . - _`, no leading dot. By convention reverse DNS.
package enum AppTreeID {
  package static func isValid(_ text: String) -> Bool {
    Limits.appTreeIDBytes.contains(text.utf8.count) && text.utf8.first != UInt8(ascii: ".")
      && text.utf8.allSatisfy(isAllowed)
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"): true
    default: false
    }
  }
}
