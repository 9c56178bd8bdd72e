internal import ZDCCrypto
internal import ZDCProtocol

extension FuzzTarget {
  /// Unsealed plaintexts: any holder of a key of the zone can have put anything into them.
  static let secrets: [FuzzTarget] = [
    FuzzTarget("record-private") { bytes in
      guard let first = bytes.first else { return }
      let body = Array(bytes.dropFirst())
      guard let secrets = try accepted({ try RecordPrivate(body, hasContent: first & 1 == 1) }) else { return }
      try FuzzFinding.require(secrets.bytes == body, "a private part has one encoding")
    },
    FuzzTarget("message-body") { bytes in
      guard let body = try accepted({ try MessageBody(bytes) }) else { return }
      try FuzzFinding.require(body.bytes == bytes, "a message has one encoding")
      try FuzzFinding.require(body.fields.heads.count <= Limits.messageHeads, "a message keeps its number of heads")
      guard let burned = body.burned else { return }
      let id = MessageID(burning: burned, from: body.fields.sender, to: body.fields.recipient)
      try FuzzFinding.require(body.fields.id == id, "a burn has the ID of the message that it names")
    },
    FuzzTarget("profile") { bytes in
      guard let profile = try accepted({ try UserProfile(bytes) }) else { return }
      try FuzzFinding.require(profile.bytes == bytes, "a profile has one encoding")
      try FuzzFinding.require(profile.name.utf8.count <= Limits.profileNameBytes, "a name keeps its limit")
      try FuzzFinding.require(profile.avatar.count <= Limits.profileAvatarBytes, "an avatar keeps its limit")
      try FuzzFinding.require(!profile.name.contains(where: \.isNewline), "a name is one line")
    },
    FuzzTarget("keyring") { bytes in
      guard let keyring = try accepted({ try Keyring(bytes) }) else { return }
      try FuzzFinding.require(keyring.bytes == bytes, "a keyring has one encoding")
    },
    FuzzTarget("content-header", longest: 256) { bytes in try checkHeader(bytes) },
    FuzzTarget("content-ranges", longest: 64) { bytes in try checkRanges(bytes) },
    FuzzTarget("seal", longest: 70 << 10) { bytes in
      // Bytes that were never sealed must not open.
      guard let key = ContentKey([UInt8](repeating: 7, count: 32)) else { return }
      let opened = try accepted { try Seal.open(key: key, label: "fuzz", context: [], bytes) }
      try FuzzFinding.require(opened == nil, "nothing opens that was not sealed")
    },
  ]

  private static func checkHeader(_ bytes: [UInt8]) throws {
    guard let header = try accepted({ try ContentHeader(bytes) }) else { return }
    try FuzzFinding.require(header.bytes == bytes, "each content header has one encoding")
    let sizes = header.sizes
    try FuzzFinding.require(
      sizes.metadata <= Limits.metadataBytes && sizes.thumbnail <= Limits.thumbnailBytes, "sections keep their limits")
    guard let layout = try accepted({ try ContentLayout(sizes: sizes, padding: .padme) }) else { return }
    let again = try ContentLayout(sizes: sizes, cipherLength: layout.cipherLength)
    try FuzzFinding.require(again == layout, "a layout follows from the sizes and the length")
  }

  /// Checks sizes, length and a range as a hostile record states them.
  private static func checkRanges(_ bytes: [UInt8]) throws {
    var reader = ByteReader(bytes)
    guard
      let numbers = try accepted({
        (try reader.readUInt32(), try reader.readUInt32(), try reader.readUInt64(), try reader.readUInt64())
      })
    else { return }
    let sizes = ContentSizes(metadata: numbers.0, thumbnail: numbers.1, data: numbers.2)
    guard let layout = try accepted({ try ContentLayout(sizes: sizes, cipherLength: numbers.3) }) else { return }
    var end: UInt64 = 0
    for section in ContentSection.allCases {
      let range = layout.range(of: section)
      try FuzzFinding.require(range.upperBound <= layout.plaintextLength, "a section lies inside the content")
      end = max(end, range.upperBound)
    }
    let leaves = layout.cipherRange(ofLeaves: 0..<layout.leafCount)
    try FuzzFinding.require(leaves == 0..<layout.cipherLength, "the leaves cover the content and nothing else")
    try FuzzFinding.require(end <= layout.cipherLength, "sealing only adds")
  }
}
