internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The attributes of a file in the file system. Symbolic links are not followed by default.
package struct FileAttributes: Sendable, Hashable {
  package enum Kind: String, Sendable {
    case file, folder
    case link = "symbolic link"
    case socket, pipe, device
  }

  package var kind: Kind
  package var size: UInt64
  package var mode: UInt16
  package var time: FileTime
  package var stamp: FileStamp?

  package init(kind: Kind, size: UInt64, mode: UInt16, time: FileTime, stamp: FileStamp? = nil) {
    self.kind = kind
    self.size = size
    self.mode = mode
    self.time = time
    self.stamp = stamp
  }

  /// - Returns: nil if there is no such file.
  /// - Throws: ``CommandError``.
  package static func of(_ path: String, followingLink: Bool = false) throws(CommandError) -> FileAttributes? {
    var info = stat()
    guard (followingLink ? stat(path, &info) : lstat(path, &info)) == 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw FileFailure.error(path, reading: true)
    }
    return FileAttributes(info)
  }

  init(_ info: stat) {
    kind = Self.kind(info.st_mode)
    size = UInt64(max(0, info.st_size))
    mode = UInt16(info.st_mode & 0o7777)
    #if canImport(Darwin)
      let (time, change) = (info.st_mtimespec, info.st_ctimespec)
    #else
      let (time, change) = (info.st_mtim, info.st_ctim)
    #endif
    self.time = FileTime(time)
    stamp = FileStamp(
      device: UInt64(truncatingIfNeeded: info.st_dev), inode: UInt64(info.st_ino), time: FileTime(change))
  }

  private static func kind(_ mode: mode_t) -> Kind {
    switch mode & S_IFMT {
    case S_IFREG: .file
    case S_IFDIR: .folder
    case S_IFLNK: .link
    case S_IFSOCK: .socket
    case S_IFIFO: .pipe
    default: .device
    }
  }

  /// The metadata stored in the cloud; nil for kinds that `put` skips.
  package var metadata: FileMetadata? {
    switch kind {
    case .file: FileMetadata(kind: .file, mode: mode, time: time)
    case .folder: FileMetadata(kind: .folder, mode: mode, time: time)
    default: nil
    }
  }
}

/// Identifies one state of one file. No other file or later state can have the same stamp: the kernel sets the change
/// time, and no call can set it back.
package struct FileStamp: Sendable, Hashable, Codable {
  package var device: UInt64
  package var inode: UInt64
  package var time: FileTime

  package init(device: UInt64, inode: UInt64, time: FileTime) {
    self.device = device
    self.inode = inode
    self.time = time
  }
}

extension FileTime {
  fileprivate init(_ time: timespec) {
    self.init(seconds: Int64(time.tv_sec), nanoseconds: UInt32(clamping: time.tv_nsec))
  }
}
