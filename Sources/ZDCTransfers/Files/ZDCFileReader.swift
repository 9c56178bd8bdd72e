public import Foundation
internal import Synchronization
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Reads any part of a crypto file's data without the rest.
///
/// All output is verified, leaf by leaf (64 KiB). One leaf is kept in memory. May be used on any thread; calls run one
/// at a time. The disk manager does not delete a file while its reader exists.
///
/// ```swift
/// let reader = ZDCFileReader(cryptoFile: file)
/// try reader.openFile()
/// let head = try reader.data(in: 0..<100)
/// reader.close()
/// ```
public final class ZDCFileReader: Sendable {
  private static let leafBytes = UInt64(ContentGeometry.chunksPerLeaf * ContentGeometry.chunkBytes)

  /// The file that is read. Retained by the reader.
  public let cryptoFile: ZDCCryptoFile
  private let state: Mutex<Open?> = Mutex(nil)

  private struct Open {
    let file: LocalFile
    var reader: ContentReader
    /// The leaf that was read last, opened.
    var leaf: (index: UInt64, bytes: [UInt8])

    /// Returns data from `offset` on, at most to the end of its leaf.
    mutating func bytes(from offset: UInt64, upTo end: UInt64) throws -> ArraySlice<UInt8> {
      let before = reader.reference.layout.range(of: .data).lowerBound
      let (start, end) = (before + offset, before + end)
      let index = start / ZDCFileReader.leafBytes
      if leaf.index != index { leaf = (index, try ZDCFileReader.open(index, &reader, file)) }
      let leafStart = index * ZDCFileReader.leafBytes
      return leaf.bytes[Int(start - leafStart)..<min(Int(end - leafStart), leaf.bytes.count)]
    }
  }

  /// Creates a reader for a file. Call ``openFile()`` before reading.
  public init(cryptoFile: ZDCCryptoFile) {
    self.cryptoFile = cryptoFile
  }

  /// Size of the data, in bytes; nil while the file is not open.
  public var cleartextFileSize: UInt64? {
    state.withLock { $0 == nil ? nil : cryptoFile.cleartextFileSize }
  }

  /// Opens the file and verifies its header. Does nothing if the file is already open.
  ///
  /// - Throws: `ZDCError` with `fileFailure`; `ZDCSecurityError` with `contentTruncated`, `contentTrailingData` or an
  ///   error of the first leaf.
  public func openFile() throws {
    try state.withLock { open in
      guard open == nil else { return }
      let file = try LocalFile.read(cryptoFile.fileURL)
      let (size, expected) = (try file.size(), cryptoFile.encryptedFileSize)
      try require(size >= expected, .contentTruncated)
      try require(size <= expected, .contentTrailingData)
      var reader = ContentReader(cryptoFile.reference, leaves: cryptoFile.leaves)
      let first = try Self.open(0, &reader, file)
      open = Open(file: file, reader: reader, leaf: (0, first))
    }
  }

  /// Closes the file. Later reads throw; ``openFile()`` opens it again.
  public func close() {
    state.withLock { $0 = nil }
  }

  /// Copies a range of the data into a buffer.
  ///
  /// ```swift
  /// let reader = ZDCFileReader(cryptoFile: file)
  /// try reader.openFile()
  /// var buffer = [UInt8](repeating: 0, count: 4_096)
  /// let count = try buffer.withUnsafeMutableBytes { try reader.getBytes($0, range: 8_192..<12_288) }
  /// ```
  ///
  /// - Parameters:
  ///   - buffer: at least as long as the range.
  ///   - range: in bytes of the data; the part beyond its end is omitted.
  /// - Returns: the number of bytes read; 0 at the end.
  /// - Throws: `ZDCError` with `fileFailure` if the file is not open, `invalidParameter` if the buffer is too short;
  ///   `ZDCSecurityError` for data that does not verify, in which case nothing of that leaf is in the buffer.
  public func getBytes(_ buffer: UnsafeMutableRawBufferPointer, range: Range<UInt64>) throws -> Int {
    let wanted = range.clamped(to: 0..<cryptoFile.cleartextFileSize)
    guard !wanted.isEmpty else { return 0 }
    guard wanted.count <= buffer.count else { throw ZDCError(.invalidParameter) }
    return try state.withLock { open in
      guard open != nil else { throw ZDCError(.fileFailure, detail: "not open") }
      var done = 0
      while done < wanted.count {
        let piece = try open?.bytes(from: wanted.lowerBound + UInt64(done), upTo: wanted.upperBound) ?? []
        piece.withUnsafeBytes { buffer[done...].copyBytes(from: $0) }
        done += piece.count
      }
      return done
    }
  }

  /// Returns the data in a range; the part beyond the end is omitted.
  ///
  /// ```swift
  /// let reader = ZDCFileReader(cryptoFile: file)
  /// try reader.openFile()
  /// let size = file.cleartextFileSize
  /// let trailer = try reader.data(in: size - min(size, 128)..<size)
  /// ```
  ///
  /// - Throws: As ``getBytes(_:range:)``.
  public func data(in range: Range<UInt64>) throws -> Data {
    var data = Data(count: range.clamped(to: 0..<cryptoFile.cleartextFileSize).count)
    let count = try data.withUnsafeMutableBytes { try getBytes($0, range: range) }
    return data.prefix(count)
  }

  private static func open(
    _ leaf: UInt64, _ reader: inout ContentReader, _ file: LocalFile
  ) throws -> [UInt8] {
    let range = ContentGeometry.leafRange(leaf, cipherLength: reader.reference.layout.cipherLength)
    var sealed = [UInt8](repeating: 0, count: range.count)
    try sealed.withUnsafeMutableBytes { try file.read(at: range.lowerBound, into: $0) }
    return try reader.open(leaf: leaf, sealed)
  }
}
