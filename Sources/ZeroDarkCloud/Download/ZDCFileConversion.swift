public import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

/// Opens crypto files (seed 002).
///
/// Synchronous: these calls read the disk, so keep them off the main thread. Everything that comes out was verified. A
/// file
/// that changed since it was downloaded throws `ZDCSecurityError`: `contentHashMismatch`, `contentTruncated`,
/// `contentTrailingData`, `commitmentMismatch`, `chunkAuthFailed` or `contentHeaderInvalid`.
public enum ZDCFileConversion {
  private static let readBytes = 4 * ContentGeometry.leafBytes

  /// The file's data. For small files: all of it is in memory.
  public static func decryptCryptoFile(intoMemory cryptoFile: ZDCCryptoFile) throws -> Data {
    try section(.data, of: cryptoFile)
  }

  /// The metadata that travels with the data, empty if there is none.
  public static func decryptMetadata(of cryptoFile: ZDCCryptoFile) throws -> Data {
    try section(.metadata, of: cryptoFile)
  }

  /// The thumbnail that travels with the data, empty if there is none.
  public static func decryptThumbnail(of cryptoFile: ZDCCryptoFile) throws -> Data {
    try section(.thumbnail, of: cryptoFile)
  }

  /// Writes the file's data to a new file, in constant memory.
  ///
  /// - Throws: also `ZDCError` with `fileFailure` if `url` exists or cannot be written, or `diskFull`. No file is left
  ///   then.
  public static func decryptCryptoFile(_ cryptoFile: ZDCCryptoFile, to url: URL) throws {
    let file = try LocalFile.create(url)
    do {
      try decrypt(cryptoFile) { section, bytes in
        if section == .data { try file.write(bytes) }
      }
    } catch {
      DownloadFolder.remove(url)
      throw error
    }
  }

  /// Writes the file's data to a stream, which is opened and closed here.
  ///
  /// If this throws, what went into the stream is a true beginning of the data, and not all of it.
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

  /// Opens the whole file, in constant memory. A section is only known to be whole when this has returned.
  static func decrypt(_ cryptoFile: ZDCCryptoFile, sink: ContentOpener.Sink) throws {
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
