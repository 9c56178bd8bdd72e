internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

#if os(Linux)
  // NB: the C headers declare syncfs with _GNU_SOURCE only, which Swift does not define.
  @_silgen_name("syncfs") private func syncFileSystem(_ descriptor: Int32) -> Int32
#endif

/// A folder that an export writes into, held by its descriptor: later changes to the path have no effect.
///
/// Names are single components that ``ExportName`` has made safe; anything else is refused here again. Links are never
/// followed.
package final class ExportFolder: Sendable {
  let descriptor: Int32
  /// For messages only.
  package let path: String

  private init(descriptor: Int32, path: String) {
    self.descriptor = descriptor
    self.path = path
  }

  deinit { close(descriptor) }

  // MARK: Opening

  /// Opens the folder that the user named, and creates it if only its last component is missing. Links in this path are
  /// followed, because the user chose it.
  package static func open(_ path: String) throws(CommandError) -> ExportFolder {
    guard mkdir(path, 0o777) == 0 || errno == EEXIST || errno == EISDIR else {
      throw FileFailure.error(path, reading: errno == ENOENT)
    }
    let descriptor = Foundation.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileFailure.error(path, reading: errno == ENOENT) }
    return ExportFolder(descriptor: descriptor, path: path)
  }

  /// Opens a folder below this one, and creates it if it is missing.
  ///
  /// - Throws: ``CommandError`` with `unsafeExportName` if a link or a file is in its place.
  package func folder(_ name: String) throws(CommandError) -> ExportFolder {
    try check(name)
    let isNew = mkdirat(descriptor, name, 0o700) == 0
    guard isNew || errno == EEXIST else { throw FileFailure.error(path(of: name)) }
    let child = openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard child >= 0 else {
      guard errno == ELOOP || errno == ENOTDIR else { throw FileFailure.error(path(of: name)) }
      throw try otherKindInPlace(name)
    }
    return ExportFolder(descriptor: child, path: path(of: name))
  }

  private func otherKindInPlace(_ name: String) throws(CommandError) -> CommandError {
    let kind = try facts(name).map { "a \($0.kind.rawValue)" } ?? "something else"
    return CommandError(
      .cannotCreate, "unsafeExportName",
      "\(ShownName.text(path(of: name))): \(kind) is in the place of a folder, so nothing below it was written; "
        + "move it away, or get the tree into another folder")
  }

  func path(of name: String) -> String {
    path.hasSuffix("/") ? path + name : path + "/" + name
  }

  /// A second check after ``ExportName``.
  private func check(_ name: String) throws(CommandError) {
    let bytes = name.utf8
    guard !bytes.isEmpty, bytes.count <= ExportName.longest, name != ".", name != "..", !bytes.contains(0x2F),
      !bytes.contains(0)
    else { throw CommandError(.security, "unsafeExportName", "an unsafe name reached the file system") }
  }

  // MARK: Look-ups

  /// - Returns: nil if nothing exists under that name.
  package func facts(_ name: String) throws(CommandError) -> FileAttributes? {
    try check(name)
    var info = stat()
    guard fstatat(descriptor, name, &info, AT_SYMLINK_NOFOLLOW) == 0 else {
      if errno == ENOENT { return nil }
      throw FileFailure.error(path(of: name), reading: true)
    }
    return FileAttributes(info)
  }

  /// Whether the file system treats `a` and `A` as one name. Creates a file to find out.
  package func foldsCase() throws(CommandError) -> Bool {
    let name = ".zdc-case-\(UUID().uuidString.lowercased())"
    let file = openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw FileFailure.error(path) }
    close(file)
    defer { unlinkat(descriptor, name, 0) }
    return try facts(name.uppercased()) != nil
  }

  // MARK: Writing

  /// Returns when the disk has all that was written below this folder.
  ///
  /// One call flushes the whole file system, which costs far less than one for each file. On Apple's systems it covers
  /// only files that were passed to ``flush(_:)`` before.
  func flush() throws(CommandError) {
    #if os(Linux)
      let isFlushed = syncFileSystem(descriptor) == 0
    #else
      let isFlushed = fcntl(descriptor, F_FULLFSYNC) == 0 || fsync(descriptor) == 0
    #endif
    guard isFlushed else { throw FileFailure.error(path) }
  }

  /// Passes a file to the drive, where one call cannot flush the whole file system.
  func flush(_ name: String) throws(CommandError) {
    #if !os(Linux)
      let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
      guard file >= 0 else { throw FileFailure.error(path(of: name)) }
      defer { close(file) }
      guard fsync(file) == 0 else { throw FileFailure.error(path(of: name)) }
    #endif
  }

  /// Sets the permission bits and time of the folder itself, after it has been filled.
  package func restore(_ metadata: FileMetadata) throws(CommandError) {
    try ExportFolder.restore(metadata, descriptor, path)
  }

  static func restore(_ metadata: FileMetadata, _ descriptor: Int32, _ path: String) throws(CommandError) {
    // Drops the set-user-id and set-group-id bits, because the tree may come from elsewhere.
    guard fchmod(descriptor, mode_t(metadata.withoutSpecialBits.mode)) == 0 else { throw FileFailure.error(path) }
    let time = timespec(tv_sec: time_t(metadata.time.seconds), tv_nsec: Int(metadata.time.nanoseconds))
    guard futimens(descriptor, [timespec(tv_sec: 0, tv_nsec: utimeOmit), time]) == 0 else {
      throw FileFailure.error(path)
    }
  }

  #if canImport(Darwin)
    private static let utimeOmit = Int(UTIME_OMIT)
  #else
    // On Linux, Swift does not import this macro: ((1l << 30) - 2l).
    private static let utimeOmit = (1 << 30) - 2
  #endif
}
