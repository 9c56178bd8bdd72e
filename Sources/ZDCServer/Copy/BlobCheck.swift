internal import ZDCProtocol

/// A defect of stored content.
package enum BlobProblem: Sendable, Hashable {
  case missing
  /// The bytes of a leaf do not have the hash that is stored for it.
  case leaf(UInt64)
  /// The stored hashes do not lead to the root that the record names.
  case root
  /// The stored hashes of groups of leaves do not match the leaves.
  case groups
}

/// Reads complete content in any store, and compares every byte with the root that a signed record names.
///
/// It takes the memory of one batch of leaf hashes, however large the content is.
package struct BlobCheck: Sendable {
  private static let batch: UInt64 = 4_096

  private let store: any BlobStore
  private let file: StoredFile
  private let root: ContentRoot

  /// - Returns: the first problem; nil if the content is sound. Content without a root is not complete, and not checked.
  package static func problem(of file: StoredFile, in store: any BlobStore) async throws -> BlobProblem? {
    guard let root = file.root else { return nil }
    do { return try await BlobCheck(store: store, file: file, root: root).problem() } catch is BlobLost {
      return .missing
    }
  }

  private func problem() async throws -> BlobProblem? {
    let length = file.cipherLength
    let leaves = ContentGeometry.leafCount(cipherLength: length)
    var slices = LeafSlices(reader: try await store.open(file.id, range: 0..<length))
    var builder = MerkleTree.Builder()
    for first in stride(from: 0, to: leaves, by: Int(Self.batch)) {
      let count = min(Self.batch, leaves - first)
      var stored = ByteReader(try await store.leafHashes(file.id, first: first, count: Int(count)))
      for leaf in first..<first + count {
        let range = ContentGeometry.leafRange(leaf, cipherLength: length)
        let hash = MerkleTree.leafHash(try await slices.next(range.count))
        let expected: MerkleHash = try stored.read32()
        guard hash == expected else { return .leaf(leaf) }
        builder.append(leafHash: hash)
      }
    }
    guard ContentRoot(reinterpreting: builder.root) == root else { return .root }
    // Computed from the hashes of groups, where the store has them.
    let whole = try await store.proof(file.id, of: [0..<leaves], leafCount: leaves)
    return whole == root.bytes ? nil : .groups
  }
}

/// Cuts what a reader returns into leaves.
private struct LeafSlices {
  let reader: any BlobReader
  private var rest: [UInt8] = []
  private var position = 0

  init(reader: any BlobReader) { self.reader = reader }

  mutating func next(_ count: Int) async throws -> [UInt8] {
    while rest.count - position < count {
      guard let more = try await reader.next() else { throw BlobLost() }
      rest.removeFirst(position)
      position = 0
      rest += more
    }
    defer { position += count }
    return Array(rest[position..<position + count])
  }
}
