public import Foundation
package import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Opens crypto files and creates them.
///
/// The variants without `progress` are synchronous and read the disk, so keep them off the main thread. Memory use is
/// constant, except for results in memory. All output is verified. A file that changed since it was created throws
/// `ZDCSecurityError`: `contentHashMismatch`, `contentTruncated`, `contentTrailingData`, `commitmentMismatch`,
/// `chunkAuthFailed` or `contentHeaderInvalid`.
///
/// ```swift
/// let (_, file) = try await session.downloadManager.downloadNodeData(node)
/// let text = String(decoding: try ZDCFileConversion.decryptCryptoFile(intoMemory: file), as: UTF8.self)
/// ```
public enum ZDCFileConversion {
  private static let readBytes = 4 * ContentGeometry.leafBytes

  /// Returns the file's data. Intended for small files: all of it is in memory.
  ///
  /// ```swift
  /// let text = String(decoding: try ZDCFileConversion.decryptCryptoFile(intoMemory: file), as: UTF8.self)
  /// ```
  ///
  /// - Throws: `ZDCError` with `fileFailure` if the file cannot be read; `ZDCSecurityError` if it has changed.
  public static func decryptCryptoFile(intoMemory cryptoFile: ZDCCryptoFile) throws -> Data {
    try section(.data, of: cryptoFile)
  }

  /// Returns the metadata that travels with the data; empty if there is none.
  ///
  /// ```swift
  /// let metadata = try ZDCFileConversion.decryptMetadata(of: file)
  /// if metadata.isEmpty { show(["no metadata"]) }
  /// ```
  public static func decryptMetadata(of cryptoFile: ZDCCryptoFile) throws -> Data {
    try section(.metadata, of: cryptoFile)
  }

  /// Returns the thumbnail that travels with the data; empty if there is none.
  ///
  /// ```swift
  /// let thumbnail = try ZDCFileConversion.decryptThumbnail(of: file)
  /// ```
  public static func decryptThumbnail(of cryptoFile: ZDCCryptoFile) throws -> Data {
    try section(.thumbnail, of: cryptoFile)
  }

  /// Writes the file's data to a new file, in constant memory.
  ///
  /// ```swift
  /// let copy = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
  /// try ZDCFileConversion.decryptCryptoFile(file, to: copy)  // cleartext: delete it as soon as it was used
  /// ```
  ///
  /// - Throws: also `ZDCError` with `fileFailure` if `url` exists or cannot be written, or `diskFull`. No file remains
  ///   after an error.
  public static func decryptCryptoFile(_ cryptoFile: ZDCCryptoFile, to url: URL) throws {
    try write(cryptoFile, to: url) { _ in }
  }

  /// Writes the file's data to a new file, off the caller's thread. Cancelling the task or the progress stops it with a
  /// `CancellationError`.
  ///
  /// ```swift
  /// let progress = Progress(totalUnitCount: 1)
  /// try await ZDCFileConversion.decryptCryptoFile(file, to: url, progress: progress)  // counts bytes of cleartext
  /// ```
  public static func decryptCryptoFile(_ cryptoFile: ZDCCryptoFile, to url: URL, progress: Progress) async throws {
    let meter = ConversionMeter(progress, total: cryptoFile.cleartextFileSize)
    try write(cryptoFile, to: url, meter.report)
    meter.finish()
  }

  private static func write(_ cryptoFile: ZDCCryptoFile, to url: URL, _ meter: FileSealing.Meter) throws {
    let file = try LocalFile.create(url)
    do {
      var done: UInt64 = 0
      try decrypt(cryptoFile) { section, bytes in
        guard section == .data else { return }
        try file.write(bytes)
        done += UInt64(bytes.count)
        try meter(done)
      }
    } catch {
      DownloadFolder.remove(url)
      throw error
    }
  }

  /// Writes the file's data to a new file and opens the other sections.
  ///
  /// ```swift
  /// let (metadata, thumbnail) = try ZDCFileConversion.decryptCloudFile(file, to: url)
  /// ```
  ///
  /// - Returns: metadata and thumbnail; nil for a section that is empty.
  public static func decryptCloudFile(
    _ cryptoFile: ZDCCryptoFile, to url: URL
  ) throws -> (metadata: Data?, thumbnail: Data?) {
    try decryptCryptoFile(cryptoFile, to: url)
    return try sections(of: cryptoFile, beside: url)
  }

  /// Returns the other sections; the data is already in the file at `url`. Removes that file on failure.
  package static func sections(
    of cryptoFile: ZDCCryptoFile, beside url: URL
  ) throws -> (metadata: Data?, thumbnail: Data?) {
    do {
      return (
        cryptoFile.metadataSize == 0 ? nil : try decryptMetadata(of: cryptoFile),
        cryptoFile.thumbnailSize == 0 ? nil : try decryptThumbnail(of: cryptoFile)
      )
    } catch {
      DownloadFolder.remove(url)
      throw error
    }
  }

  /// Returns the file's data, all of it in memory, off the caller's thread.
  public static func decryptCryptoFile(
    intoMemory cryptoFile: ZDCCryptoFile, progress: Progress
  ) async throws -> Data {
    let meter = ConversionMeter(progress, total: cryptoFile.cleartextFileSize)
    var data = Data()
    data.reserveCapacity(Int(clamping: cryptoFile.cleartextFileSize))
    try decrypt(cryptoFile) { section, bytes in
      guard section == .data else { return }
      data.append(contentsOf: bytes)
      try meter.report(UInt64(data.count))
    }
    meter.finish()
    return data
  }

  /// Streams the file's data, about 1 MiB at a time, without reading ahead. The stream throws when data does not
  /// verify; everything delivered before is a genuine prefix of the data.
  ///
  /// The file is read as the loop asks for it, so memory is bounded.
  ///
  /// ```swift
  /// let output = try FileHandle(forWritingTo: url)
  /// for try await chunk in ZDCFileConversion.cleartextChunks(of: file) {
  ///   try output.write(contentsOf: chunk)
  /// }
  /// ```
  public static func cleartextChunks(of cryptoFile: ZDCCryptoFile) -> AsyncThrowingStream<Data, any Error> {
    let reader = ChunkReader(cryptoFile)
    return AsyncThrowingStream { try await reader.next() }
  }

  /// Writes the file's data to a stream, which this method opens and closes.
  ///
  /// If this throws, the stream has received a genuine prefix of the data, but not all of it.
  ///
  /// ```swift
  /// guard let stream = OutputStream(url: url, append: false) else { return }
  /// try ZDCFileConversion.decryptCryptoFile(file, to: stream)
  /// ```
  ///
  /// - Throws: `ZDCError` with `fileFailure`, whose `underlying` is the stream's error; `ZDCSecurityError`.
  public static func decryptCryptoFile(_ cryptoFile: ZDCCryptoFile, to stream: OutputStream) throws {
    stream.open()
    defer { stream.close() }
    try decrypt(cryptoFile) { section, bytes in
      if section == .data { try write(Array(bytes), to: stream) }
    }
  }

  private static func write(_ bytes: [UInt8], to stream: OutputStream) throws {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBufferPointer { buffer in
        buffer.baseAddress.map { stream.write($0 + written, maxLength: bytes.count - written) } ?? 0
      }
      guard count > 0 else { throw ZDCError(.fileFailure, underlying: stream.streamError) }
      written += count
    }
  }

  private static func section(_ wanted: ContentSection, of cryptoFile: ZDCCryptoFile) throws -> Data {
    var data = Data()
    data.reserveCapacity(cryptoFile.reference.layout.range(of: wanted).count)
    try decrypt(cryptoFile) { section, bytes in
      if section == wanted { data.append(contentsOf: bytes) }
    }
    return data
  }

  /// Opens the whole file, in constant memory. A section is known to be complete only after this returns.
  package static func decrypt(_ cryptoFile: ZDCCryptoFile, sink: ContentOpener.Sink) throws {
    let file = try LocalFile.read(cryptoFile.fileURL)
    let opener = ContentOpener(cryptoFile.reference, leaves: cryptoFile.leaves)
    while true {
      let bytes = try file.read(upTo: readBytes)
      if bytes.isEmpty { break }
      try opener.push(bytes, sink: sink)
    }
    try opener.finish()
  }
}

/// A reader that opens its file on first use.
private actor ChunkReader {
  private let cryptoFile: ZDCCryptoFile
  private var reader: CryptoFileReader?

  init(_ cryptoFile: ZDCCryptoFile) {
    self.cryptoFile = cryptoFile
  }

  func next() throws -> Data? {
    let reader = try self.reader ?? CryptoFileReader(cryptoFile)
    self.reader = reader
    return try reader.next().map { Data($0) }
  }
}
