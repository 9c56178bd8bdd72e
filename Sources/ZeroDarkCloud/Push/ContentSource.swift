internal import Foundation
internal import ZDCCrypto

/// Where the bytes of an upload come from: memory, or a file that is read in slices, sealed or not.
enum ContentSource: Sendable {
  case memory([UInt8])
  case file(FileSource)
  case cryptoFile(ZDCCryptoFile)

  var size: UInt64 {
    switch self {
    case .memory(let bytes): UInt64(bytes.count)
    case .file(let file): file.size
    case .cryptoFile(let file): file.cleartextFileSize
    }
  }

  func open() throws -> Reader {
    switch self {
    case .memory(let bytes): Reader(rest: bytes[...])
    case .file(let file): Reader(handle: try FileHandle(forReadingFrom: file.url))
    case .cryptoFile(let file): Reader(opener: try CryptoFileReader(file))
    }
  }

  /// - Throws: `CryptoFailure.sourceChanged` if the file is not the one that was opened.
  func checkUnchanged() throws {
    guard case .file(let file) = self else { return }
    guard try FileSource(url: file.url) == file else { throw CryptoFailure.sourceChanged }
  }

  /// All of it, for contents that ride along.
  func readAll() throws -> [UInt8] {
    var reader = try open()
    var all: [UInt8] = []
    while let slice = try reader.next() { all += slice }
    try checkUnchanged()
    return all
  }

  struct Reader {
    private static let sliceBytes = 1 << 20
    fileprivate var rest: ArraySlice<UInt8> = []
    fileprivate var handle: FileHandle?
    fileprivate var opener: CryptoFileReader?

    mutating func next() throws -> [UInt8]? {
      if let opener { return try opener.next() }
      if let handle {
        guard let data = try handle.read(upToCount: Self.sliceBytes), !data.isEmpty else { return nil }
        return [UInt8](data)
      }
      guard !rest.isEmpty else { return nil }
      defer { rest = rest.dropFirst(Self.sliceBytes) }
      return Array(rest.prefix(Self.sliceBytes))
    }
  }
}

/// A file as it was when the app named it: another size or time later means that it was changed.
struct FileSource: Sendable, Equatable {
  let url: URL
  let size: UInt64
  let modified: Date?

  init(url: URL) throws {
    let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
    guard let size = attributes[.size] as? NSNumber else { throw CocoaError(.fileReadUnknown) }
    self.url = url
    self.size = size.uint64Value
    modified = attributes[.modificationDate] as? Date
  }
}
