internal import Foundation
internal import ZDCCommands
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCTreesystem
internal import ZeroDarkCloud

extension FuzzTarget {
  /// Text that users type, that other users choose as file names, or that the other side sends.
  static let texts: [FuzzTarget] = [
    FuzzTarget("access-key-words", longest: 1 << 10) { bytes in
      let words = Mnemonic.split(typed: text(bytes))
      guard let key = try? AccessKey(words: words) else { return }
      try FuzzFinding.require(key.words == words, "24 words have one access key")
    },
    FuzzTarget("id-text", longest: 64) { bytes in
      let text = text(bytes)
      if let id = NodeID(text: text) { try FuzzFinding.require(id.text == text, "an id has one text") }
      if let id = UserID(text: text) { try FuzzFinding.require(id.text == text, "an id has one text") }
    },
    FuzzTarget("identity-code", longest: 128) { bytes in
      let text = text(bytes)
      guard let code = IdentityCode(text) else { return }
      try FuzzFinding.require(code.text == text, "a code has one text")
    },
    FuzzTarget("cloud-path", longest: 512) { bytes in
      let text = text(bytes)
      guard let path = ZDCCloudPath(path: text) else { return }
      try FuzzFinding.require(path.path() == text, "a cloud path has one text")
    },
    FuzzTarget("path-text", longest: 4 << 10) { bytes in
      guard let path = ZDCTreesystemPath(text(bytes)) else { return }
      let again = ZDCTreesystemPath(path.fullPath())
      try FuzzFinding.require(again == path, "a path's text reads back as the same path")
    },
    FuzzTarget("name-folding", longest: 4 << 10) { bytes in
      guard let folded = try? FoldedName(text(bytes)) else { return }
      try FuzzFinding.require(1...Limits.nameBytes ~= folded.utf8.count, "a folded name keeps its limit")
      let again = try FoldedName(folded.string)
      try FuzzFinding.require(again.utf8 == folded.utf8, "a folded name stays as it is")
    },
    FuzzTarget("export-name", longest: 4 << 10) { bytes in try checkExportNames(bytes) },
    FuzzTarget("file-metadata", longest: 64) { bytes in
      guard let metadata = FileMetadata(bytes) else { return }
      // A later version may append fields; this one has exactly one encoding.
      var known = Array(bytes.prefix(FileMetadata.size))
      if known[4] > 1 { known[4] = 1 } else { known = bytes }
      try FuzzFinding.require(metadata.bytes == known, "a file's metadata has one encoding")
    },
    FuzzTarget("json", longest: 64 << 10) { bytes in decodeMessages(Data(bytes)) },
  ]

  private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  /// Checks names from hostile records, one per line: each must stay in the folder, and distinct from the others.
  private static func checkExportNames(_ bytes: [UInt8]) throws {
    let names = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { text(Array($0)) }
    for policy in ExportNamePolicy.allCases {
      let assigned = ExportNames.assign(names, policy: policy)
      try FuzzFinding.require(assigned.count == names.count, "every node gets a name")
      try FuzzFinding.require(Set(assigned).count == names.count, "no two nodes meet in one file")
      for name in assigned { try check(exported: name) }
    }
  }

  private static func check(exported name: String) throws {
    let bytes = Array(name.utf8)
    try FuzzFinding.require(1...ExportName.longest ~= bytes.count, "a file name has 1 to 255 bytes")
    try FuzzFinding.require(name != "." && name != "..", "a file name is not a step")
    let isPlain = bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") }
    try FuzzFinding.require(isPlain, "a file name has neither separators nor control characters")
  }

  /// Decodes every JSON body that either side reads. A refusal is any thrown error; nothing may trap.
  private static func decodeMessages(_ data: Data) {
    let decoder = JSONDecoder()
    func decode<Value: Decodable>(_ type: Value.Type) { _ = try? decoder.decode(type, from: data) }
    decode(ServerInfo.self)
    decode(RegisterRequest.self)
    decode(ChallengeRequest.self)
    decode(ChallengeResponse.self)
    decode(LoginRequest.self)
    decode(DeviceLoginRequest.self)
    decode(SessionResponse.self)
    decode(SessionList.self)
    decode(AppendLinkRequest.self)
    decode(ZoneList.self)
    decode(HeadEvent.self)
    decode(CommitResponse.self)
    decode(BlobTicketRequest.self)
    decode(BlobStatus.self)
    decode(AuditReport.self)
    decode(ServerError.self)
  }
}
