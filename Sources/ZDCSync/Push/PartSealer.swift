internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCTransfers

/// Seals a source as a stream and splits it into parts that end on leaf boundaries. Holds little more than one part in
/// memory.
struct PartSealer {
  package struct Part: Sendable {
    package let index: Int
    package let bytes: [UInt8]
    package let hash: [UInt8]
  }

  private static let paddingSlice: UInt64 = 1 << 20

  private let source: ContentSource
  private let sealer: ContentSealer
  private var reader: ContentSource.Reader
  private var isAtEnd = false
  private var current: [UInt8] = []
  private var spare: [UInt8] = []
  private var leafHashes: [UInt8] = []
  private var index = 0
  private var sealed: [Part] = []
  /// The content's fields for the record, once all content is sealed.
  package private(set) var fields: NodeRecord.Content?

  package init(_ source: ContentSource, _ sealer: ContentSealer) throws {
    self.source = source
    self.sealer = sealer
    reader = try source.open()
  }

  /// Returns the next part, or nil after the last.
  ///
  /// - Throws: `CryptoFailure.sourceChanged` if the source's length or modification time changed while it was read.
  package mutating func next() throws -> Part? {
    while sealed.isEmpty, fields == nil { try advance() }
    return sealed.isEmpty ? nil : sealed.removeFirst()
  }

  /// Reuses the buffer of a sent part. Allocating a new buffer for each part makes the allocator keep several of them.
  package mutating func reuse(_ part: consuming Part) { spare = part.bytes }

  private mutating func advance() throws {
    var leaves: [SealedLeaf] = []
    if isAtEnd {
      if try !sealer.pad(atMost: Self.paddingSlice, emit: { leaves.append($0) }) {
        fields = try sealer.finish(dataVersion: 1) { leaves.append($0) }
      }
    } else if let slice = try reader.next() {
      try sealer.push(slice) { leaves.append($0) }
    } else {
      try source.checkUnchanged()
      isAtEnd = true
    }
    for leaf in leaves { take(leaf) }
  }

  private mutating func take(_ leaf: SealedLeaf) {
    if current.isEmpty { begin() }
    current += leaf.bytes
    leafHashes += leaf.hash.bytes
    guard current.count == ContentGeometry.partRange(index, cipherLength: sealer.cipherLength).count else { return }
    sealed.append(Part(index: index, bytes: current, hash: MerkleTree.partHash(leafHashes: leafHashes)))
    (current, leafHashes) = ([], [])
    index += 1
  }

  private mutating func begin() {
    swap(&current, &spare)
    current.removeAll(keepingCapacity: true)
    current.reserveCapacity(ContentGeometry.partRange(index, cipherLength: sealer.cipherLength).count)
  }
}
