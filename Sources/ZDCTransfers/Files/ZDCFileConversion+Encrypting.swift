public import Foundation
internal import ZDCCrypto

// Seals cleartext into crypto files, and crypto files into others. Each call uses a fresh key, which the returned value
// holds. Without that value or a copy of it, the file can never be opened again.

extension ZDCFileConversion {
  // MARK: Into a cache file

  /// Seals a file of any size into a new cache file, in constant memory.
  ///
  /// ```swift
  /// let sealed = try ZDCFileConversion.encryptCleartextFile(url, toCacheFile: cacheURL)
  /// try session.diskManager.importNodeData(ZDCDiskImport(cryptoFile: sealed), for: node)  // remembers the key
  /// ```
  ///
  /// - Throws: `ZDCError` with `fileFailure` if `target` exists or either file cannot be read or written, `diskFull`,
  ///   or `fileModifiedDuringRead`. No file remains after an error.
  public static func encryptCleartextFile(_ source: URL, toCacheFile target: URL) throws -> ZDCCryptoFile {
    try FileSealing(source: .cleartextFile(source), format: .cacheFile).write(to: target) { _ in }
  }

  /// Seals bytes in memory into a new cache file.
  ///
  /// ```swift
  /// let sealed = try ZDCFileConversion.encryptCleartextData(jpeg, toCacheFile: cacheURL)
  /// try session.diskManager.importNodeThumbnail(ZDCDiskImport(cryptoFile: sealed), for: node)
  /// ```
  ///
  /// - Throws: `ZDCError` with `fileFailure` if `target` exists or cannot be written, or `diskFull`. No file remains
  ///   after an error.
  public static func encryptCleartextData(_ data: Data, toCacheFile target: URL) throws -> ZDCCryptoFile {
    try FileSealing(source: .memory([UInt8](data)), format: .cacheFile).write(to: target) { _ in }
  }

  // MARK: Into a cloud file

  /// Seals a file of any size, with its sections, into a new cloud file, in constant memory.
  ///
  /// ```swift
  /// let sealed = try ZDCFileConversion.encryptCleartextFile(
  ///   imageURL, toCloudFile: url, metadata: Data(#"{"width":640}"#.utf8), thumbnail: jpeg)
  /// ```
  ///
  /// - Throws: as ``encryptCleartextFile(_:toCacheFile:)``; `ZDCSecurityError` with `limitExceeded` for a section above
  ///   16 MiB.
  public static func encryptCleartextFile(
    _ source: URL, toCloudFile target: URL, metadata: Data? = nil, thumbnail: Data? = nil
  ) throws -> ZDCCryptoFile {
    try cloud(.cleartextFile(source), metadata, thumbnail).write(to: target) { _ in }
  }

  /// Seals bytes in memory, with their sections, into a new cloud file.
  ///
  /// ```swift
  /// let sealed = try ZDCFileConversion.encryptCleartextData(
  ///   try JSONEncoder().encode(task), toCloudFile: url, metadata: nil, thumbnail: jpeg)
  /// ```
  ///
  /// - Throws: `ZDCError` with `fileFailure` or `diskFull`; `ZDCSecurityError` with `limitExceeded` for a section above
  ///   16 MiB.
  public static func encryptCleartextData(
    _ data: Data, toCloudFile target: URL, metadata: Data? = nil, thumbnail: Data? = nil
  ) throws -> ZDCCryptoFile {
    try cloud(.memory([UInt8](data)), metadata, thumbnail).write(to: target) { _ in }
  }

  package static func cloud(_ source: ContentSource, _ metadata: Data?, _ thumbnail: Data?) -> FileSealing {
    FileSealing(
      source: source, metadata: [UInt8](metadata ?? Data()), thumbnail: [UInt8](thumbnail ?? Data()),
      format: .cloudFile)
  }

  // MARK: Piece by piece

  /// Seals data that arrives piece by piece.
  ///
  /// ```swift
  /// let file = try ZDCFileConversion.encryptCleartext(ofSize: total, toCacheFile: url) { write in
  ///   while let piece = try recorder.next() { try write(piece) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - size: total size of all pieces, in bytes. It determines the layout of the file.
  ///   - target: where to create the file.
  ///   - body: passes the pieces to `write`.
  /// - Throws: the error of `body`; `ZDCError` with `fileModifiedDuringRead` if the pieces do not add up to `size`.
  public static func encryptCleartext(
    ofSize size: UInt64, toCacheFile target: URL, _ body: (_ write: (Data) throws -> Void) throws -> Void
  ) throws -> ZDCCryptoFile {
    try encrypt(try ContentSealer(dataSize: size), .cacheFile, target, body)
  }

  /// Like ``encryptCleartext(ofSize:toCacheFile:_:)``, for a cloud file.
  public static func encryptCleartext(
    ofSize size: UInt64, toCloudFile target: URL, metadata: Data? = nil, thumbnail: Data? = nil,
    _ body: (_ write: (Data) throws -> Void) throws -> Void
  ) throws -> ZDCCryptoFile {
    let sealer = try ContentSealer(
      metadata: [UInt8](metadata ?? Data()), thumbnail: [UInt8](thumbnail ?? Data()), dataSize: size)
    return try encrypt(sealer, .cloudFile, target, body)
  }

  private static func encrypt(
    _ sealer: ContentSealer, _ format: ZDCCryptoFileFormat, _ target: URL,
    _ body: (_ write: (Data) throws -> Void) throws -> Void
  ) throws -> ZDCCryptoFile {
    try FileSealing.write(sealer, format, to: target) { leaves in
      try body { try sealer.push($0, emit: leaves.take) }
    }
  }

  // MARK: Between crypto files

  /// Seals a crypto file's data, with the given sections, into a new cloud file.
  ///
  /// ```swift
  /// let sealed = try ZDCFileConversion.convertCacheFile(file, toCloudFile: url, metadata: nil, thumbnail: jpeg)
  /// ```
  ///
  /// - Throws: As ``encryptCleartextFile(_:toCloudFile:metadata:thumbnail:)``; `ZDCSecurityError` if the source has
  ///   changed.
  public static func convertCacheFile(
    _ cryptoFile: ZDCCryptoFile, toCloudFile target: URL, metadata: Data? = nil, thumbnail: Data? = nil
  ) throws -> ZDCCryptoFile {
    try cloud(.cryptoFile(cryptoFile), metadata, thumbnail).write(to: target) { _ in }
  }

  /// Seals a crypto file's data into a new cache file, which has no other sections.
  ///
  /// ```swift
  /// let cached = try ZDCFileConversion.convertCloudFile(file, toCacheFile: cacheURL)
  /// ```
  ///
  /// - Throws: As ``encryptCleartextFile(_:toCacheFile:)``; `ZDCSecurityError` if the source has changed.
  public static func convertCloudFile(_ cryptoFile: ZDCCryptoFile, toCacheFile target: URL) throws -> ZDCCryptoFile {
    try FileSealing(source: .cryptoFile(cryptoFile), format: .cacheFile).write(to: target) { _ in }
  }

  /// Seals everything in a crypto file into a new one of the same format, under another key.
  ///
  /// ```swift
  /// let copy = try ZDCFileConversion.reEncryptFile(file, to: url)  // the old key does not open it
  /// ```
  ///
  /// - Throws: As ``encryptCleartextFile(_:toCacheFile:)``; `ZDCSecurityError` if the source has changed.
  public static func reEncryptFile(_ cryptoFile: ZDCCryptoFile, to target: URL) throws -> ZDCCryptoFile {
    try resealing(cryptoFile).write(to: target) { _ in }
  }

  static func resealing(_ cryptoFile: ZDCCryptoFile) throws -> FileSealing {
    FileSealing(
      source: .cryptoFile(cryptoFile), metadata: [UInt8](try decryptMetadata(of: cryptoFile)),
      thumbnail: [UInt8](try decryptThumbnail(of: cryptoFile)), format: cryptoFile.fileFormat)
  }
}

// MARK: - With progress

extension ZDCFileConversion {
  /// Like ``encryptCleartextFile(_:toCacheFile:)``, off the caller's thread. Cancelling the task or the progress stops
  /// it with a `CancellationError`, and no file remains.
  ///
  /// ```swift
  /// let progress = Progress(totalUnitCount: 1)
  /// let sealed = try await ZDCFileConversion.encryptCleartextFile(url, toCacheFile: cacheURL, progress: progress)
  /// ```
  public static func encryptCleartextFile(
    _ source: URL, toCacheFile target: URL, progress: Progress
  ) async throws -> ZDCCryptoFile {
    try await seal(FileSealing(source: .cleartextFile(source), format: .cacheFile), target, progress)
  }

  /// Like ``encryptCleartextFile(_:toCloudFile:metadata:thumbnail:)``, off the caller's thread.
  public static func encryptCleartextFile(
    _ source: URL, toCloudFile target: URL, metadata: Data? = nil, thumbnail: Data? = nil, progress: Progress
  ) async throws -> ZDCCryptoFile {
    try await seal(cloud(.cleartextFile(source), metadata, thumbnail), target, progress)
  }

  /// Like ``convertCacheFile(_:toCloudFile:metadata:thumbnail:)``, off the caller's thread.
  public static func convertCacheFile(
    _ cryptoFile: ZDCCryptoFile, toCloudFile target: URL, metadata: Data? = nil, thumbnail: Data? = nil,
    progress: Progress
  ) async throws -> ZDCCryptoFile {
    try await seal(cloud(.cryptoFile(cryptoFile), metadata, thumbnail), target, progress)
  }

  /// Like ``convertCloudFile(_:toCacheFile:)``, off the caller's thread.
  public static func convertCloudFile(
    _ cryptoFile: ZDCCryptoFile, toCacheFile target: URL, progress: Progress
  ) async throws -> ZDCCryptoFile {
    try await seal(FileSealing(source: .cryptoFile(cryptoFile), format: .cacheFile), target, progress)
  }

  /// Like ``reEncryptFile(_:to:)``, off the caller's thread.
  public static func reEncryptFile(
    _ cryptoFile: ZDCCryptoFile, to target: URL, progress: Progress
  ) async throws -> ZDCCryptoFile {
    try await seal(try resealing(cryptoFile), target, progress)
  }

  package static func seal(
    _ sealing: FileSealing, _ target: URL, _ progress: Progress
  ) async throws -> ZDCCryptoFile {
    let meter = ConversionMeter(progress, total: sealing.source.size)
    let file = try sealing.write(to: target, meter.report)
    meter.finish()
    return file
  }
}

/// Reports the progress of a conversion, and stops it when it is cancelled.
struct ConversionMeter {
  private let progress: Progress
  private let total: Int64

  package init(_ progress: Progress, total: UInt64) {
    self.progress = progress
    // Empty work has one unit, so that it can complete.
    self.total = max(1, Int64(clamping: total))
    progress.totalUnitCount = self.total
    progress.completedUnitCount = 0
  }

  package func report(_ done: UInt64) throws {
    try Task.checkCancellation()
    if progress.isToStop { throw CancellationError() }
    progress.completedUnitCount = min(total, Int64(clamping: done))
  }

  package func finish() { progress.completedUnitCount = total }
}
