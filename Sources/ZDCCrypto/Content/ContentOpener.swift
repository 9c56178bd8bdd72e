internal import Crypto
package import ZDCProtocol

/// Content that was opened in one piece.
package struct OpenedContent: Sendable, Equatable {
  package var metadata: [UInt8] = []
  package var thumbnail: [UInt8] = []
  package var data: [UInt8] = []
}

/// Opens whole content as it arrives, leaf by leaf, in constant memory (PROTOCOL 3.8).
///
/// Every byte that it emits was verified. A stream that is truncated, too long or altered ends with an error, never
/// silently. Synchronous; must not be used from two tasks concurrently.
package final class ContentOpener {
  private var reader: ContentReader
  private let layout: ContentLayout
  private var pending: [UInt8] = []
  private var nextLeaf: UInt64 = 0
  private var thumbnailHash = SHA256()
  private var failure: ZDCSecurityError?

  /// Receives the next verified bytes of one section.
  package typealias Sink = (ContentSection, ArraySlice<UInt8>) throws -> Void

  package init(_ reference: ContentReference, leaves: ContentLeaves) {
    reader = ContentReader(reference, leaves: leaves)
    layout = reference.layout
    pending.reserveCapacity(ContentGeometry.firstLeafBytes)
  }

  /// Resumes content whose first leaves, including header, metadata and thumbnail, were opened before.
  ///
  /// - Parameter reader: A reader that has opened the first leaf.
  package init(continuing reader: ContentReader, from leaf: UInt64) {
    self.reader = reader
    layout = reader.reference.layout
    nextLeaf = leaf
    pending.reserveCapacity(ContentGeometry.firstLeafBytes)
  }

  /// Takes the next slice of ciphertext, of any size, and emits all bytes that are verified.
  ///
  /// - Throws: Any error of ``ContentReader/read(_:fetched:)``, now and at every later call, or any error of `sink`.
  package func push(_ slice: some Collection<UInt8>, sink: Sink) throws {
    if let failure { throw failure }
    var rest = slice[...]
    while !rest.isEmpty {
      guard nextLeaf < layout.leafCount else { throw fail(ZDCSecurityError(.contentTrailingData)) }
      let wanted = ContentGeometry.leafRange(nextLeaf, cipherLength: layout.cipherLength).count - pending.count
      pending.append(contentsOf: rest.prefix(wanted))
      let isComplete = rest.count >= wanted
      rest = rest.dropFirst(wanted)
      if isComplete { try openPending(sink) }
    }
  }

  /// Ends the stream. Throws `contentTruncated` unless all ciphertext has arrived.
  package func finish() throws(ZDCSecurityError) {
    if let failure { throw failure }
    guard nextLeaf == layout.leafCount, pending.isEmpty else { throw fail(ZDCSecurityError(.contentTruncated)) }
  }

  private func openPending(_ sink: Sink) throws {
    let plaintext: [UInt8]
    do throws(ZDCSecurityError) {
      plaintext = try reader.open(leaf: nextLeaf, pending)
    } catch { throw fail(error) }
    pending.removeAll(keepingCapacity: true)
    let range = layout.plaintextRange(ofLeaf: nextLeaf)
    nextLeaf += 1
    for section in ContentSection.allCases {
      let part = layout.range(of: section).clamped(to: range)
      guard !part.isEmpty else { continue }
      let start = Int(part.lowerBound - range.lowerBound)
      let bytes = plaintext[start..<start + part.count]
      if section == .thumbnail { try checkThumbnail(bytes, end: part.upperBound) }
      try sink(section, bytes)
    }
  }

  /// Checks the thumbnail against record and header. Its last bytes are held back until then.
  private func checkThumbnail(_ bytes: ArraySlice<UInt8>, end: UInt64) throws(ZDCSecurityError) {
    bytes.withUnsafeBytes { thumbnailHash.update(bufferPointer: $0) }
    guard end == layout.range(of: .thumbnail).upperBound else { return }
    let isNamed = thumbnailHash.finalize().starts(with: reader.reference.secrets.thumbnailTag.bytes)
    guard isNamed else { throw fail(ZDCSecurityError(.contentHeaderInvalid)) }
  }

  private func fail(_ error: ZDCSecurityError) -> ZDCSecurityError {
    failure = error
    pending = []
    return error
  }

  /// Opens content in memory, such as content that arrived with its commit.
  ///
  /// With all bytes available, no leaf hashes from the server are needed.
  package static func openSmall(_ bytes: [UInt8], _ reference: ContentReference) throws -> OpenedContent {
    let layout = reference.layout
    try require(UInt64(bytes.count) >= layout.cipherLength, .contentTruncated)
    try require(UInt64(bytes.count) == layout.cipherLength, .contentTrailingData)
    let hashes = (0..<layout.leafCount).map { index in
      let range = ContentGeometry.leafRange(index, cipherLength: layout.cipherLength)
      return withBytes(of: bytes, Int(range.lowerBound)..<Int(range.upperBound)) { leafHash($0) }
    }
    let opener = ContentOpener(reference, leaves: try ContentLeaves(hashes, for: reference))
    var content = OpenedContent()
    try opener.push(bytes) { content.append($1, to: $0) }
    try opener.finish()
    return content
  }
}

extension OpenedContent {
  fileprivate mutating func append(_ bytes: ArraySlice<UInt8>, to section: ContentSection) {
    switch section {
    case .metadata: metadata += bytes
    case .thumbnail: thumbnail += bytes
    case .data: data += bytes
    }
  }
}
