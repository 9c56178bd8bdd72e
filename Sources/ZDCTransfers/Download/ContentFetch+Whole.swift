internal import Foundation
internal import ZDCClientAPI
internal import ZDCCrypto
internal import ZDCProtocol

// Downloads of whole content into files. Large downloads resume where an earlier attempt or an earlier process stopped.

extension ContentFetch {
  /// Above this, a file is verified leaf by leaf as it grows. Below, fetching it again costs less than fetching the
  /// hashes.
  static let resumableLeaves: UInt64 = 128

  /// Up to this, content is held in memory until all of it has arrived and is verified, which saves the request for the
  /// hashes: 2 MiB.
  private static let leavesInMemory: UInt64 = 32

  var isResumable: Bool { layout.leafCount > Self.resumableLeaves }

  // MARK: Ciphertext

  /// Writes the ciphertext to a new file and returns it once it is verified.
  ///
  /// - Parameters:
  ///   - partials: the folder that keeps an unfinished file until the next attempt.
  ///   - handOver: decides between this process and the system before each request of a resumable transfer.
  ///   - check: throws to stop a resumable transfer.
  package func download(
    to url: URL, partials: PartialFolder, handOver: TransferHandOver, progress: Progress, check: () throws -> Void = {}
  ) async throws -> ZDCCryptoFile {
    guard isResumable, let partial = try partials.open(target.blob) else {
      return try await downloadAtOnce(to: url, progress: progress)
    }
    do {
      let leaves = try await leaves()
      var file = try VerifiedFile(continuing: partial.file, leaves: leaves, layout: layout)
      try await receive(from: { file.received }) {
        try await handOver.enter(.blob(target.blob))
        for left in try partials.left(of: target.blob) { try file.absorb(left) }
      } _: { slice in
        try file.push(slice)
        progress(file.received)
        try check()
      }
      try partials.removeLeft(of: target.blob)
      try LocalFile.rename(partial.url, to: url)
      return ZDCCryptoFile(fileURL: url, reference: target.reference, leaves: leaves)
    } catch {
      // The verified part stays valid whatever the server answered. It is removed only if it will never be requested
      // again.
      if error is ServerError, !Self.mayContinue(after: error) { DownloadFolder.remove(partial.url) }
      throw located(error)
    }
  }

  private func downloadAtOnce(to url: URL, progress: Progress) async throws -> ZDCCryptoFile {
    let file = try LocalFile.create(url)
    do {
      var verifier = StreamVerifier(target.reference)
      try await receive(from: { verifier.received }) { slice in
        try verifier.push(slice)
        try file.write(slice)
        progress(verifier.received)
      }
      return ZDCCryptoFile(fileURL: url, reference: target.reference, leaves: try verifier.finish())
    } catch {
      DownloadFolder.remove(url)
      throw located(error)
    }
  }

  /// Whether the server, the network or the caller stopped the transfer while the content is still wanted.
  private static func mayContinue(after error: any Error) -> Bool {
    switch error {
    case is TransportError, is CancellationError: true
    case let error as ServerError: error.retryable
    default: false
    }
  }

  // MARK: Cleartext

  /// Opens the content as it arrives and writes its data to a file in the folder. No ciphertext touches the disk.
  ///
  /// - Returns: the file, which the caller must rename, and the metadata.
  package func open(in folder: URL, progress: Progress) async throws -> (url: URL, metadata: [UInt8]) {
    guard layout.leafCount > Self.leavesInMemory else { return try await openAtOnce(in: folder, progress: progress) }
    // Requested together with its hashes to save a round trip, unless an earlier attempt may have left a part of it.
    async let whole = isResumable ? nil : wholeAnswer()
    let leaves = try await leaves()
    let partial = try openPartial(in: folder)
    do {
      var clear = try await ClearFile(continuing: partial.file, leaves: leaves, fetch: self)
      try await receive(from: { clear.received }, first: await whole) { slice in
        try clear.push(slice)
        progress(clear.received)
      }
      return (partial.url, try clear.finish())
    } catch {
      if !isResumable || !Self.mayContinue(after: error) { DownloadFolder.remove(partial.url) }
      throw located(error)
    }
  }

  private func openAtOnce(in folder: URL, progress: Progress) async throws -> (url: URL, metadata: [UInt8]) {
    let (bytes, leaves) = try await verifiedBytes(progress: progress)
    let partial = try openPartial(in: folder)
    do {
      var clear = ClearFile(partial.file, ContentOpener(target.reference, leaves: leaves))
      try clear.push(bytes)
      return (partial.url, try clear.finish())
    } catch {
      DownloadFolder.remove(partial.url)
      throw located(error)
    }
  }

  private func verifiedBytes(progress: Progress) async throws -> (bytes: [UInt8], leaves: ContentLeaves) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(layout.cipherLength))
    do {
      var verifier = StreamVerifier(target.reference)
      try await receive(from: { verifier.received }) { slice in
        try verifier.push(slice)
        bytes += slice
        progress(verifier.received)
      }
      return (bytes, try verifier.finish())
    } catch { throw located(error) }
  }

  private func openPartial(in folder: URL) throws -> (url: URL, file: LocalFile) {
    if isResumable {
      let url = folder.appendingPathComponent(".zdc-\(target.blob.text).part", isDirectory: false)
      if let file = try LocalFile.resume(url) { return (url, file) }
    }
    let url = folder.appendingPathComponent(".zdc-\(UUID().uuidString)", isDirectory: false)
    return (url, try LocalFile.create(url))
  }
}

/// A cleartext file that grows by verified leaves.
///
/// Verifies the work of an earlier process by sealing it again: the result must have the hashes of the content's
/// leaves.
private struct ClearFile: ~Copyable {
  private let file: LocalFile
  private let opener: ContentOpener
  private var metadata: [UInt8] = []
  private(set) var received: UInt64 = 0

  init(_ file: LocalFile, _ opener: ContentOpener) {
    self.file = file
    self.opener = opener
  }

  init(continuing file: LocalFile, leaves: ContentLeaves, fetch: ContentFetch) async throws {
    self.file = file
    let reference = fetch.target.reference
    guard try file.size() > 0 else {
      opener = ContentOpener(reference, leaves: leaves)
      return
    }
    var reader = ContentReader(reference, leaves: leaves)
    let head = reader.planOfHead()
    var fetched: [[UInt8]] = []
    for range in head.fetches { fetched.append(try await fetch.bytes(range)) }
    let opened = try reader.read(head, fetched: fetched)
    let next = try Self.trueLeaves(of: file, opened, reader: reader, leaves: leaves, plan: head)
    guard next >= head.leaves.upperBound else {
      try file.truncate(to: 0)
      opener = ContentOpener(reference, leaves: leaves)
      return
    }
    metadata = Array(reader.section(.metadata, in: opened, of: head))
    received = ContentGeometry.leafRange(next, cipherLength: reference.layout.cipherLength).lowerBound
    try file.truncate(to: reference.layout.dataOffset(ofLeaf: next))
    opener = ContentOpener(continuing: reader, from: next)
  }

  /// Returns the number of leading leaves whose data is in the file and verifies.
  private static func trueLeaves(
    of file: LocalFile, _ head: [UInt8], reader: ContentReader, leaves: ContentLeaves, plan: ContentRangePlan
  ) throws -> UInt64 {
    let sealer = try ContentSealer(
      again: reader, metadata: reader.section(.metadata, in: head, of: plan),
      thumbnail: reader.section(.thumbnail, in: head, of: plan))
    let size = try file.size()
    let layout = reader.reference.layout
    var leaf: UInt64 = 0
    while leaf < layout.leafCount, layout.dataOffset(ofLeaf: leaf + 1) <= size,
      layout.dataOffset(ofLeaf: leaf) < layout.sizes.data
    {
      let sealed = try sealer.leaf(leaf) { offset, buffer in try file.read(at: offset, into: buffer) }
      guard sealed.hash == leaves[leaf] else { break }
      leaf += 1
    }
    return leaf
  }

  mutating func push(_ slice: [UInt8]) throws {
    var metadata = metadata
    try opener.push(slice) { section, bytes in
      switch section {
      case .metadata: metadata += bytes
      case .thumbnail: break
      case .data: try file.write(bytes)
      }
    }
    self.metadata = metadata
    received += UInt64(slice.count)
  }

  /// - Returns: the metadata.
  func finish() throws -> [UInt8] {
    try opener.finish()
    return metadata
  }
}
