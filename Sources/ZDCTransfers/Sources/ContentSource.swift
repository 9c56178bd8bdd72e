package import Foundation
internal import ZDCCrypto
internal import ZDCProtocol
package import ZDCSupport

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The source of an upload's bytes: memory, or a file that is read in slices, sealed or not.
package enum ContentSource: Sendable {
  case memory([UInt8])
  case file(FileSource)
  case cryptoFile(ZDCCryptoFile)

  package var size: UInt64 {
    switch self {
    case .memory(let bytes): UInt64(bytes.count)
    case .file(let file): file.size
    case .cryptoFile(let file): file.cleartextFileSize
    }
  }

  package func open() throws -> Reader {
    switch self {
    case .memory(let bytes): Reader(rest: bytes[...])
    case .file(let file): Reader(file: try LocalFile.read(file.url))
    case .cryptoFile(let file): Reader(opener: try CryptoFileReader(file))
    }
  }

  /// - Throws: `CryptoFailure.sourceChanged` if the file has changed since this source was created.
  package func checkUnchanged() throws {
    guard case .file(let file) = self else { return }
    guard try FileSource(url: file.url) == file else { throw CryptoFailure.sourceChanged }
  }

  /// Returns a hash that identifies the state of the source and its sections. It decides whether an interrupted upload
  /// may resume.
  ///
  /// For a file it is a guess from path, size, time and file number. Sealing the file again proves that the bytes are
  /// equal.
  package func fingerprint(metadata: [UInt8], thumbnail: [UInt8]) -> [UInt8] {
    var facts = ByteWriter(capacity: 128)
    switch self {
    case .memory(let bytes):
      facts.append(UInt8(1))
      facts.append(ContentRoot(sha256: bytes))
    case .file(let file):
      facts.append(UInt8(2))
      facts.append32(Array(file.url.path.utf8))
      facts.append(file.modified.timeIntervalSince1970.bitPattern)
      facts.append(file.number)
    case .cryptoFile(let file):
      facts.append(UInt8(3))
      facts.append(file.reference.content.blobID)
      facts.append(file.reference.content.contentRoot)
    }
    facts.append(size)
    facts.append(ContentRoot(sha256: metadata))
    facts.append(ContentRoot(sha256: thumbnail))
    return ContentRoot(sha256: facts.bytes).bytes
  }

  /// Reads all bytes, for content that is sent inline.
  package func readAll() throws -> [UInt8] {
    var reader = try open()
    var all: [UInt8] = []
    while let slice = try reader.next() { all += slice }
    try checkUnchanged()
    return all
  }

  package struct Reader {
    private static let sliceBytes = 1 << 20
    fileprivate var rest: ArraySlice<UInt8> = []
    fileprivate var file: LocalFile?
    fileprivate var opener: CryptoFileReader?

    package mutating func next() throws -> [UInt8]? {
      if let opener { return try opener.next() }
      if let file {
        let bytes = try file.read(upTo: Self.sliceBytes)
        return bytes.isEmpty ? nil : bytes
      }
      guard !rest.isEmpty else { return nil }
      defer { rest = rest.dropFirst(Self.sliceBytes) }
      return Array(rest.prefix(Self.sliceBytes))
    }
  }
}

/// The state of a file when the app named it. A different size or time later means that the file was changed.
package struct FileSource: Sendable, Equatable {
  package let url: URL
  package let size: UInt64
  package let modified: Date
  /// The file system's number. A file that replaced another one has a different number.
  package let number: UInt64

  /// Follows a link, as reading does.
  package init(url: URL) throws(ZDCError) {
    var info = stat()
    guard stat(url.path, &info) == 0 else { throw LocalFile.failure() }
    // Reading a pipe would wait for a writer.
    guard info.st_mode & S_IFMT == S_IFREG else { throw ZDCError(.fileFailure, detail: "not a regular file") }
    self.url = url
    size = UInt64(max(0, info.st_size))
    #if canImport(Darwin)
      let time = info.st_mtimespec
    #else
      let time = info.st_mtim
    #endif
    modified = Date(timeIntervalSince1970: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)
    number = UInt64(info.st_ino)
  }
}
