internal import ZDCProtocol

/// The metadata that `zdc put` stores for a file or folder: the metadata section of the node's content.
///
/// ```
/// 0   b[4]  "ZDFM"
/// 4   u8    version     1
/// 5   u8    kind        1 regular file, 2 folder
/// 6   u16   mode        permission bits with set-user-id, set-group-id and sticky (0o7777)
/// 8   u64   seconds     modification time since 1970, two's complement
/// 16  u32   nanoseconds 0 … 999,999,999
/// ```
/// Big-endian, 20 bytes. A later version may only append bytes, and must raise the version byte; a reader uses the
/// bytes that it knows.
package struct FileMetadata: Sendable, Hashable {
  package enum Kind: UInt8, Sendable, Codable {
    case file = 1
    case folder = 2
  }

  package var kind: Kind
  /// Maximum 0o7777.
  package var mode: UInt16
  package var time: FileTime

  package init(kind: Kind, mode: UInt16, time: FileTime) {
    self.kind = kind
    self.mode = mode & 0o7777
    self.time = time
  }

  /// The metadata of an exported file or folder: set-user-id, set-group-id and sticky are not restored.
  package var withoutSpecialBits: FileMetadata { FileMetadata(kind: kind, mode: mode & 0o777, time: time) }

  package var bytes: [UInt8] {
    var out = ByteWriter(capacity: Self.size)
    out.append(contentsOf: Self.magic)
    out.append(UInt8(1))
    out.append(kind.rawValue)
    out.append(mode)
    out.append(UInt64(bitPattern: time.seconds))
    out.append(time.nanoseconds)
    return out.bytes
  }

  /// Returns nil if the section has another format: an app other than `zdc` made the node.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count >= Self.size, bytes.starts(with: Self.magic), bytes[4] >= 1 else { return nil }
    guard bytes[4] > 1 || bytes.count == Self.size else { return nil }
    var reader = ByteReader(bytes[5..<Self.size])
    guard let kind = (try? reader.readUInt8()).flatMap(Kind.init), let mode = try? reader.readUInt16(), mode <= 0o7777,
      let seconds = try? reader.readUInt64(), let nanoseconds = try? reader.readUInt32(), nanoseconds < 1_000_000_000
    else { return nil }
    self.init(kind: kind, mode: mode, time: FileTime(seconds: Int64(bitPattern: seconds), nanoseconds: nanoseconds))
  }

  package static let size = 20
  private static let magic = Array("ZDFM".utf8)
}

/// A point in time with the resolution of file systems.
package struct FileTime: Sendable, Hashable, Codable {
  package var seconds: Int64
  package var nanoseconds: UInt32

  package init(seconds: Int64, nanoseconds: UInt32) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }
}
