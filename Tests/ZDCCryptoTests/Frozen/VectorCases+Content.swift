import Crypto
import ZDCProtocol

@testable import ZDCCrypto

/// Content that both readers can recreate from its description: sections follow `pattern`.
struct ContentVector {
  var metadata = 0
  var thumbnail = 0
  var data = 0
  var padding = "padme"
  let blobID: BlobID
  let sealer: ContentSealer
  let bytes: [UInt8]
  let hashes: [MerkleHash]

  init(_ seed: String, metadata: Int = 0, thumbnail: Int = 0, data: Int, padding: String = "padme") throws {
    var source = SeededSource("zdc1 vectors content \(seed)")
    (self.metadata, self.thumbnail, self.data, self.padding) = (metadata, thumbnail, data, padding)
    blobID = source.blobID()
    sealer = try ContentSealer(
      metadata: pattern(metadata), thumbnail: pattern(thumbnail), dataSize: UInt64(data),
      padding: Self.policy(padding), blobID: blobID, random: &source)
    var (bytes, hashes): ([UInt8], [MerkleHash]) = ([], [])
    try sealer.push(pattern(data)) {
      bytes += $0.bytes
      hashes.append($0.hash)
    }
    _ = try sealer.finish(dataVersion: 1) {
      bytes += $0.bytes
      hashes.append($0.hash)
    }
    (self.bytes, self.hashes) = (bytes, hashes)
  }

  static func policy(_ text: String) -> ContentPadding {
    switch text {
    case "none": .none
    case "padme": .padme
    default: .bucket(UInt64(text.split(separator: ":").last ?? "") ?? 1)
    }
  }

  var members: [String: VectorValue] {
    [
      "metadataSize": VectorValue(metadata), "thumbnailSize": VectorValue(thumbnail), "dataSize": VectorValue(data),
      "padding": .text(padding), "blobID": VectorValue(blobID.bytes),
      "key": VectorValue(sealer.secrets.key.exportBytes()), "salt": VectorValue(bytes.prefix(24)),
      "thumbnailTag": VectorValue(sealer.secrets.thumbnailTag.bytes),
      "cipherLength": VectorValue(bytes.count), "cipherSHA256": VectorValue(Array(SHA256.hash(data: bytes))),
      "contentRoot": VectorValue(MerkleTree.root(leafHashes: hashes).bytes), "leafCount": VectorValue(hashes.count),
      "leavesSHA256": VectorValue(Array(SHA256.hash(data: hashes.flatMap(\.bytes)))),
    ]
  }
}

extension VectorCases {
  mutating func addContents() throws {
    let header = ContentGeometry.headerBytes
    let lengths: [(String, Int)] = [
      ("0", 0), ("1", 1), ("chunk-1", 16_383 - header), ("chunk", 16_384 - header), ("chunk+1", 16_385 - header),
      ("65535", 65_535), ("65536", 65_536), ("leaf-1", 65_535 - header), ("leaf", 65_536 - header),
      ("leaf+1", 65_537 - header), ("two-leaves", 131_072 - header), ("1mib-1", (1 << 20) - 1), ("1mib", 1 << 20),
      ("1mib+1", (1 << 20) + 1),
    ]
    for (name, length) in lengths {
      let content = try ContentVector(name, data: length, padding: "none")
      add("content-\(name)", "content", "data of \(length) bytes without padding", content.members)
    }
    for padding in ["none", "padme", "bucket:4096", "bucket:1"] {
      let content = try ContentVector(padding, metadata: 100, thumbnail: 2_000, data: 30_001, padding: padding)
      let name = padding.replacing(":", with: "-")
      add("content-padding-\(name)", "content", "all sections, padding \(padding)", content.members)
    }
    for (metadata, thumbnail) in [(1, 0), (0, 1), (70_000, 70_000)] {
      let content = try ContentVector("\(metadata)-\(thumbnail)", metadata: metadata, thumbnail: thumbnail, data: 10)
      add("content-sections-\(metadata)-\(thumbnail)", "content", "sections of these lengths", content.members)
    }
    try addContentFailures()
  }

  /// `change` is a list of steps that both readers apply to the ciphertext. `rehash` 1 means that hashes and root are
  /// recomputed, as a reader who colludes with the server could do.
  private mutating func addContentFailures() throws {
    let content = try ContentVector("failures", metadata: 10, thumbnail: 10, data: 100_000)
    func members(
      _ change: [VectorValue], rehash: Bool = false, _ more: [String: VectorValue] = [:]
    ) -> [String: VectorValue] {
      content.members.merging(["change": VectorValue(change), "rehash": rehash ? 1 : 0]) { $1 }.merging(more) { $1 }
    }
    let size = content.bytes.count
    for (name, bit) in [("salt", 3), ("commitment", 30 * 8), ("body", 20_000 * 8), ("tag", size * 8 - 1)] {
      let flip: VectorValue = ["flip": VectorValue(bit)]
      add(
        "content-flip-\(name)", "content", "a flipped bit in the \(name)", expect: .contentHashMismatch, members([flip])
      )
    }
    add(
      "content-flip-body-rehash", "content", "the same with new hashes", expect: .chunkAuthFailed,
      members([["flip": 160_000]], rehash: true))
    add(
      "content-flip-commitment-rehash", "content", "another commitment with new hashes", expect: .commitmentMismatch,
      members([["flip": 240]], rehash: true))
    for (name, count) in [("chunk", 16_456), ("leaf", 65_656), ("byte", size - 1), ("all", 0)] {
      add(
        "content-cut-\(name)", "content", "the stream ends early", expect: .contentTruncated,
        members([["truncate": VectorValue(count)]]))
    }
    add("content-trailing", "content", "a byte too many", expect: .contentTrailingData, members([["append": "00"]]))
    add(
      "content-swapped-chunks", "content", "two chunks change places", expect: .contentHashMismatch,
      members([["swap": 0]]))
    add(
      "content-swapped-chunks-rehash", "content", "two chunks change places, with new hashes", expect: .chunkAuthFailed,
      members([["swap": 0]], rehash: true))
    add(
      "content-wrong-key", "content", "another content key", expect: .commitmentMismatch,
      members([], ["key": VectorValue(pattern(32)), "sealKey": VectorValue(content.sealer.secrets.key.exportBytes())]))
    add(
      "content-wrong-blob", "content", "under another blobID", expect: .commitmentMismatch,
      members([], ["blobID": VectorValue(pattern(16)), "sealBlobID": VectorValue(content.blobID.bytes)]))
    add(
      "content-wrong-root", "content", "the root of another content", expect: .contentHashMismatch,
      members([], ["contentRoot": VectorValue(pattern(32))]))
  }
}
