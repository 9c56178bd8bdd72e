import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

extension HostileScenario {
  /// Content: whole, in batches, in parts.
  static let content: [HostileScenario] = altered + cut + parts + missing

  private static func turned(_ where_: String, at offset: Int, rows: String...) -> HostileScenario {
    var scenario = HostileScenario(
      "", story: "a bit of the \(where_)", error: "contentHashMismatch", .fails, by: .download
    ) { $0.tell(.turnBit(.content, at: offset)) }
    scenario.rows = rows
    return scenario
  }

  private static let altered: [HostileScenario] = [
    turned("salt", at: 0, rows: "B1", "16"),
    turned("commitment", at: 30, rows: "B1", "16"),
    turned("first chunk", at: 100, rows: "B1", "16"),
    turned("first tag", at: 56 + 16_390, rows: "B1", "16"),
    turned("second leaf", at: 70_000, rows: "B1", "16"),
    turned("last tag", at: -1, rows: "B1", "16", "B11"),
    HostileScenario("B2", story: "two chunks change places", error: "contentHashMismatch", .fails, by: .download) {
      act in
      act.tell(
        .change(.content) { bytes in
          let (first, second) = (56..<56 + 16_400, 56 + 16_400..<56 + 32_800)
          guard bytes.count > second.upperBound else { return }
          let kept = Array(bytes[first])
          bytes.replaceSubrange(first, with: bytes[second])
          bytes.replaceSubrange(second, with: kept)
        })
    },
    HostileScenario("B2", story: "a chunk stands twice", error: "contentHashMismatch", .fails, by: .download) { act in
      act.tell(
        .change(.content) { bytes in
          guard bytes.count > 56 + 32_800 else { return }
          bytes.replaceSubrange(56 + 16_400..<56 + 32_800, with: bytes[56..<56 + 16_400])
        })
    },
    HostileScenario(
      "B4", "18", story: "another node's small content", error: "contentHashMismatch", .fails,
      by: .download
    ) { act in
      let (left, right) = (try blob("left", act), try blob("right", act))
      act.tell(
        .rewrite(.smallContent) { items in
          let other = items.first { $0.blob == right }?.object
          // If the same answer does not have the other node's object, the bytes belong to no node at all.
          for index in items.indices where items[index].blob == left {
            items[index].object = other ?? items[index].object.map { ~$0 }
          }
        })
    },
    HostileScenario(
      "B5", "19", story: "the content before the last edit", error: "contentHashMismatch", .fails,
      by: .download
    ) { act in
      let old = act.stage.oldFilm
      act.tell(.substitute(.content, with: old))
    },
    HostileScenario(
      "B6", "20", story: "content that a reader sealed under the node's key",
      error: "contentHashMismatch", .fails, by: .download
    ) { act in
      // A reader of a node knows its content key; another salt gives another valid ciphertext.
      let forged = try ContentSealer.sealSmall(data: Array("same Size".utf8))
      act.tell(.substitute(.smallContent, with: forged.bytes) { $0.blob == (try? blob("left", act)) })
    },
    HostileScenario(
      "B2", story: "chunks in another order, under a root that fits", error: "chunkAuthFailed", .fails,
      by: .download, mend: { try await mendSmall($0) }
    ) { act in
      let sealed = try ContentSealer.sealSmall(data: [UInt8](repeating: 7, count: 30_000), padding: .none)
      var bytes = sealed.bytes
      bytes[60] ^= 1
      try await push(bytes, sealed, to: "small", act)
    },
    HostileScenario(
      "B7", story: "a key that is not the content's", error: "commitmentMismatch", .fails, by: .download,
      mend: { try await mendSmall($0) }
    ) { act in
      let (sealed, other) = (
        try ContentSealer.sealSmall(data: Array("a".utf8)), try ContentSealer.sealSmall(data: Array("a".utf8))
      )
      try await push(sealed.bytes, sealed, to: "small", act, secrets: other.secrets)
    },
  ]

  private static func blob(_ name: String, _ act: HostileAct) throws -> BlobID? {
    try act.zone.node(name).record.fields.content?.blobID
  }

  /// Pushes content with a root that matches its bytes, whatever they are, as a writer could.
  private static func push(
    _ bytes: [UInt8], _ sealed: SealedContent, to name: String, _ act: HostileAct, secrets: ContentSecrets? = nil
  ) async throws {
    let rogue = try await act.rogue()
    let zone = try await rogue.home()
    var draft = try zone.draft(next: name)
    let version = (try zone.node(name).record.fields.content?.dataVersion ?? 0) + 1
    draft.secrets.content = secrets ?? sealed.secrets
    draft.content = NodeRecord.Content(
      dataVersion: version, blobID: sealed.blobID, cipherLength: UInt64(bytes.count),
      contentRoot: ContentRoot(reinterpreting: MerkleTree.leafHash(bytes)))
    draft.dataAuthor = nil
    let record = try RecordSealer.seal(draft)
    try await rogue.push(try zone.commit(putting: record), [record], contents: [(sealed.blobID, bytes)])
    try await act.victim.pull()
  }

  /// Pushes the text that the honest reference has.
  private static func mendSmall(_ act: HostileAct) async throws {
    let sealed = try ContentSealer.sealSmall(data: Array("one more".utf8))
    try await push(sealed.bytes, sealed, to: "small", act)
  }

  private static let cut: [HostileScenario] = [
    HostileScenario("B3", "17", story: "the last chunk is cut off", error: "contentTruncated", .fails, by: .download) {
      act in act.tell(.change(.content) { $0.removeLast($0.count % 16_400) })
    },
    HostileScenario(
      "B3", "17", story: "all behind the first leaf is cut off", error: "contentTruncated", .fails,
      by: .download
    ) { act in act.tell(.change(.content) { $0.removeLast(max(0, $0.count - 65_656)) }) },
    HostileScenario("B3", "17", story: "a chunk is appended", error: "contentTrailingData", .fails, by: .download) {
      act in act.tell(.change(.content) { $0 += [UInt8](repeating: 0, count: 16_400) })
    },
    HostileScenario(
      "17", story: "the length is announced and not sent", error: "contentTruncated", .fails,
      by: .download
    ) { act in
      let length = try act.zone.node("film").record.fields.content?.cipherLength ?? 0
      act.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.content else { return false }
          answer.body = []
          answer.announcedLength = answer.path.contains("film") ? 0 : length
          return true
        })
    },
    HostileScenario(
      "B11", "17", story: "an export is cut at a leaf's border", error: "contentTruncated", .fails,
      by: .export
    ) { act in act.tell(.change(.content) { $0.removeLast(max(0, $0.count - 65_656)) }) },
    HostileScenario(
      "B11", story: "an export's last chunk is altered", error: "contentHashMismatch", .fails,
      by: .export
    ) { $0.tell(.turnBit(.content, at: -1)) },
    HostileScenario("37", "B12", story: "2^63 bytes announced", error: "contentTrailingData", .fails, by: .download) {
      $0.tell(.announce(1 << 63, "GET", Routes.content))
    },
    HostileScenario("37", "B12", story: "content that never ends", error: "contentTrailingData", .fails, by: .download)
    {
      act in
      let length = try act.zone.node("film").record.fields.content?.cipherLength ?? 0
      act.tell(
        .endless("GET", Routes.content, of: [UInt8](repeating: 0, count: 65_536)),
        .announce(length, "GET", Routes.content))
    },
  ]

  private static let parts: [HostileScenario] = [
    HostileScenario("B8", story: "a bit of the thumbnail", error: "contentHashMismatch", .fails, by: .meta) {
      $0.tell(.turnBit(.content, at: 1_000))
    },
    HostileScenario("B8", story: "a bit of the proof", error: "contentHashMismatch", .fails, by: .meta) {
      $0.tell(.turnBit(.leafProof, at: -10))
    },
    HostileScenario("B8", story: "a shorter proof", error: "contentHashMismatch", .fails, by: .meta) {
      $0.tell(.change(.leafProof) { $0.removeLast(32) })
    },
    HostileScenario("B8", story: "a bit of the leaf hashes", error: "contentHashMismatch", .fails, by: .export) {
      $0.tell(.turnBit(.leafHashes, at: 40))
    },
    HostileScenario("B8", story: "fewer leaf hashes", error: "contentHashMismatch", .fails, by: .export) {
      $0.tell(.change(.leafHashes) { $0.removeLast(32) })
    },
    HostileScenario("B8", story: "the thumbnail of another version", error: "contentHashMismatch", .fails, by: .meta) {
      act in
      let old = act.stage.oldFilm
      act.tell(.change(.content) { $0 = Array(old.prefix($0.count)) })
    },
    HostileScenario("B3", story: "a range that is too short", error: "contentTruncated", .fails, by: .meta) {
      $0.tell(.change(.content) { $0.removeLast(100) })
    },
    HostileScenario("B3", story: "a range that is too long", error: "contentTrailingData", .fails, by: .meta) {
      $0.tell(.change(.content) { $0 += [1, 2, 3] })
    },
  ]

  private static let missing: [HostileScenario] = [
    HostileScenario("C18", story: "the content of a node is not found", error: "objectMissing", .fails, by: .download) {
      $0.tell(.refuse("GET", Routes.content, status: 404, code: "notFound"))
    },
    HostileScenario("C18", story: "the content of a node is gone", error: "gone", .fails, by: .download) {
      $0.tell(.refuse("GET", Routes.content, status: 410, code: "gone"))
    },
    HostileScenario("C18", story: "a small content is withheld", error: "", .passes, by: .download) { act in
      let left = try blob("left", act)
      act.tell(.withhold(.smallContent) { $0.blob == left })
    },
  ]
}
