public import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Searches for planted texts where they must not occur: in a server's files, its log, the traffic.
///
/// Each text is searched as UTF-8, UTF-16 in both byte orders, hexadecimal, and base64 in its three phases (both
/// alphabets). Deflated data is also searched (zlib, gzip, or raw from the first byte).
///
/// ```swift
/// let scanner = CanaryScanner(["canary-in-a-file-name-7f3a"])
/// #expect(try scanner.scan(folder: server.folder).isEmpty)
/// ```
public struct CanaryScanner: Sendable {
  /// Where a planted text was found.
  public struct Finding: Sendable, Hashable, CustomStringConvertible {
    /// The planted text.
    public let canary: String
    /// Its encoding: `utf8`, `utf16be`, `hex`, `base64+1`, `deflated utf8` …
    public let form: String
    /// The file, or the caller's name for the bytes.
    public let place: String
    /// The position of the finding, in bytes.
    public let offset: Int

    /// The finding as one line of text.
    public var description: String { "\(canary) as \(form) in \(place) at \(offset)" }
  }

  struct Pattern: Sendable {
    var canary: String
    var form: String
    var bytes: [UInt8]
  }

  /// The minimum length. Shorter texts occur by chance in encrypted bytes.
  public static let shortest = 12

  private let patterns: [Pattern]
  private static let deflateMarks: [[UInt8]] = [
    [0x78, 0x01], [0x78, 0x5e], [0x78, 0x9c], [0x78, 0xda], [0x1f, 0x8b, 0x08],
  ]

  /// - Parameter canaries: The planted texts, each at least ``shortest`` bytes long.
  public init(_ canaries: [String]) {
    precondition(canaries.allSatisfy { $0.utf8.count >= Self.shortest }, "a canary has at least 12 bytes")
    patterns = canaries.flatMap(Self.forms)
  }

  // MARK: Searching

  /// Returns all findings in the names and data of files in a folder and its subfolders.
  ///
  /// ```swift
  /// let scanner = CanaryScanner(["a secret name"])
  /// let findings = try scanner.scan(folder: url)
  /// #expect(findings.isEmpty)
  /// ```
  public func scan(folder: URL) throws -> [Finding] {
    var findings: [Finding] = []
    let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
    for name in names {
      findings += scan(Array(name.utf8), place: "the name \(name)")
      let url = folder.appendingPathComponent(name)
      guard try url.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { continue }
      findings += scan([UInt8](try Data(contentsOf: url)), place: name)
    }
    return findings
  }

  /// Returns all findings in some bytes.
  public func scan(_ bytes: [UInt8], place: String) -> [Finding] {
    scanPlain(bytes, prefix: "", place: place, at: nil) + scanDeflated(bytes, place: place)
  }

  /// Returns all findings in a text.
  ///
  /// ```swift
  /// let scanner = CanaryScanner(["canary-in-a-file-name-7f3a"])
  /// #expect(scanner.scan(server.log.text, place: "the server's log").isEmpty)
  /// ```
  public func scan(_ text: String, place: String) -> [Finding] {
    scan(Array(text.utf8), place: place)
  }

  private func scanPlain(_ bytes: [UInt8], prefix: String, place: String, at fixed: Int?) -> [Finding] {
    patterns.compactMap { pattern in
      Self.find(pattern.bytes, in: bytes, from: 0).map {
        Finding(canary: pattern.canary, form: prefix + pattern.form, place: place, offset: fixed ?? $0)
      }
    }
  }

  private func scanDeflated(_ bytes: [UInt8], place: String) -> [Finding] {
    var starts: Set<Int> = [0]
    for mark in Self.deflateMarks {
      var from = 0
      while let offset = Self.find(mark, in: bytes, from: from) {
        starts.insert(mark.count == 3 ? offset : offset + 2)
        from = offset + 1
      }
    }
    return starts.sorted().flatMap { start -> [Finding] in
      guard let body = Self.deflateBody(in: bytes, at: start) else { return [] }
      let inflated = Inflate.inflate(bytes, from: body)
      guard inflated.count >= Self.shortest else { return [] }
      return scanPlain(inflated, prefix: "deflated ", place: place, at: start)
    }
  }

  /// Returns where the deflated data starts: after the header for a gzip member, otherwise at `start`.
  private static func deflateBody(in bytes: [UInt8], at start: Int) -> Int? {
    guard bytes.count > start + 10, bytes[start] == 0x1f, bytes[start + 1] == 0x8b else { return start }
    let flags = bytes[start + 3]
    var position = start + 10
    if flags & 4 != 0 {
      guard bytes.count > position + 1 else { return nil }
      position += 2 + Int(bytes[position]) + Int(bytes[position + 1]) << 8
    }
    for flag: UInt8 in [8, 16] where flags & flag != 0 {
      while position < bytes.count, bytes[position] != 0 { position += 1 }
      position += 1
    }
    return flags & 2 != 0 ? position + 2 : position
  }

  static func find(_ needle: [UInt8], in hay: [UInt8], from: Int) -> Int? {
    guard let first = needle.first, from >= 0 else { return nil }
    return hay.withUnsafeBytes { hay in
      needle.withUnsafeBytes { needle in
        guard let base = hay.baseAddress, let wanted = needle.baseAddress else { return nil }
        var position = from
        while position + needle.count <= hay.count {
          guard let hit = memchr(base + position, Int32(first), hay.count - needle.count - position + 1) else {
            return nil
          }
          position = UnsafeRawPointer(hit) - base
          if memcmp(hit, wanted, needle.count) == 0 { return position }
          position += 1
        }
        return nil
      }
    }
  }
}
