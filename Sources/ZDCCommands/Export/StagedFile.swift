internal import Foundation
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A temporary folder next to the export, where files are completed before they get their final names.
///
/// It is hidden, accessible to its owner only, and removed at the end. An interrupted export leaves no partial file under
/// a final name. It may leave this folder behind; the next export to the same place takes over the unfinished downloads
/// in it and removes it.
package final class StagingFolder: Sendable {
  private let parent: ExportFolder
  private let folder: ExportFolder
  private let name: String
  /// Locked while the export runs.
  private let lock: Int32
  private let keepsDownloads = Mutex(false)

  package init(in parent: ExportFolder) throws(CommandError) {
    self.parent = parent
    let id = UUID().uuidString.lowercased()
    name = StagingName.prefix + id
    // Locked before it gets its final name: without a lock it would be mistaken for an abandoned one.
    let unlocked = ".zdc-new-" + id
    guard mkdirat(parent.descriptor, unlocked, 0o700) == 0 else { throw FileFailure.error(parent.path) }
    lock = openat(parent.descriptor, unlocked, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard lock >= 0 else { throw FileFailure.error(parent.path) }
    flock(lock, LOCK_EX | LOCK_NB)
    guard renameat(parent.descriptor, unlocked, parent.descriptor, name) == 0 else {
      throw FileFailure.error(parent.path)
    }
    folder = try parent.folder(name)
    takeOverForgotten()
  }

  deinit {
    remove()
    close(lock)
  }

  /// Removes the folder and any files left in it, except for unfinished downloads after ``keepDownloads()``.
  package func remove() {
    Self.remove(name, folder.descriptor, in: parent, keepsDownloads: keepsDownloads.withLock { $0 })
  }

  /// Keeps unfinished downloads for the next export to the same place, which continues them.
  package func keepDownloads() {
    keepsDownloads.withLock { $0 = true }
  }

  private static func remove(
    _ name: String, _ descriptor: Int32, in parent: ExportFolder, keepsDownloads: Bool = false
  ) {
    for entry in names(in: descriptor) where !(keepsDownloads && isDownload(entry)) { unlinkat(descriptor, entry, 0) }
    unlinkat(parent.descriptor, name, AT_REMOVEDIR)
  }

  /// Whether the download manager has left the file unfinished. It verifies the file before it continues it.
  private static func isDownload(_ name: String) -> Bool { name.hasPrefix(".zdc-") && name.hasSuffix(".part") }

  /// Removes the folders of interrupted exports: those with our owner and name that are not locked. Their unfinished
  /// downloads move into this folder.
  private func takeOverForgotten() {
    for name in Self.names(in: parent.descriptor) where StagingName.isOne(name) {
      let descriptor = openat(parent.descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      guard descriptor >= 0 else { continue }
      defer { close(descriptor) }
      var info = stat()
      guard fstat(descriptor, &info) == 0, info.st_uid == geteuid(), flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
        continue
      }
      for entry in Self.names(in: descriptor) where Self.isDownload(entry) {
        renameat(descriptor, entry, folder.descriptor, entry)
      }
      Self.remove(name, descriptor, in: parent)
    }
  }

  private static func names(in descriptor: Int32) -> [String] {
    let own = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard own >= 0, let stream = fdopendir(own) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names
  }

  /// Whether the file system treats `a` and `A` as one name. Creates a file to find out.
  package func foldsCase() throws(CommandError) -> Bool { try folder.foldsCase() }

  /// Returns a path to which large content may be written; then call ``adopt(_:)``.
  package func newPath() -> (name: String, path: String) {
    let name = UUID().uuidString.lowercased()
    return (name, folder.path(of: name))
  }

  /// Creates a file with these bytes.
  package func file(_ bytes: [UInt8]) throws(CommandError) -> StagedFile {
    let name = UUID().uuidString.lowercased()
    let file = openat(folder.descriptor, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw FileFailure.error(folder.path) }
    let staged = StagedFile(folder: folder, name: name, descriptor: file)
    try staged.write(bytes)
    return staged
  }

  /// Opens a file that was written under a name from ``newPath()``.
  package func adopt(_ name: String) throws(CommandError) -> StagedFile {
    let file = openat(folder.descriptor, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
    guard file >= 0 else { throw FileFailure.error(folder.path) }
    return StagedFile(folder: folder, name: name, descriptor: file)
  }
}

/// A complete file without its final name.
package final class StagedFile: Sendable {
  private let folder: ExportFolder
  private let name: String
  private let descriptor: Int32

  init(folder: ExportFolder, name: String, descriptor: Int32) {
    self.folder = folder
    self.name = name
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
    unlinkat(folder.descriptor, name, 0)
  }

  func write(_ bytes: [UInt8]) throws(CommandError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw FileFailure.error(folder.path) }
      rest = rest.dropFirst(count)
    }
  }

  package func restore(_ metadata: FileMetadata) throws(CommandError) {
    try ExportFolder.restore(metadata, descriptor, folder.path)
  }

  /// Sets the mode of a new file, for content without metadata.
  package func restoreStandardMode() throws(CommandError) {
    guard fchmod(descriptor, 0o644) == 0 else { throw FileFailure.error(folder.path) }
  }

  /// Whether a file with the same bytes has that name.
  ///
  /// - Parameter comparesMetadata: Whether mode and time must be the same, too.
  package func equals(_ name: String, in target: ExportFolder, comparesMetadata: Bool) -> Bool {
    // A pipe without a writer would block.
    let other = openat(target.descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard other >= 0 else { return false }
    defer { close(other) }
    var (own, found) = (stat(), stat())
    guard fstat(descriptor, &own) == 0, fstat(other, &found) == 0 else { return false }
    let (mine, theirs) = (FileAttributes(own), FileAttributes(found))
    guard theirs.kind == .file, theirs.size == mine.size else { return false }
    guard !comparesMetadata || theirs.metadata == mine.metadata else { return false }
    return hasSameBytes(as: other, mine.size)
  }

  private func hasSameBytes(as other: Int32, _ size: UInt64) -> Bool {
    var (mine, theirs) = ([UInt8](repeating: 0, count: 1 << 18), [UInt8](repeating: 0, count: 1 << 18))
    var offset: UInt64 = 0
    while offset < size {
      let wanted = Int(min(UInt64(mine.count), size - offset))
      guard Self.fill(&mine, wanted, descriptor, offset), Self.fill(&theirs, wanted, other, offset),
        mine[..<wanted] == theirs[..<wanted]
      else { return false }
      offset += UInt64(wanted)
    }
    return true
  }

  private static func fill(_ buffer: inout [UInt8], _ wanted: Int, _ descriptor: Int32, _ offset: UInt64) -> Bool {
    buffer.withUnsafeMutableBytes { bytes in
      var done = 0
      while done < wanted {
        let count = pread(descriptor, bytes.baseAddress.map { $0 + done }, wanted - done, off_t(offset) + off_t(done))
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { return false }
        done += count
      }
      return true
    }
  }

  /// Gives the file its final name, atomically.
  ///
  /// - Parameter overwriting: Whether to replace an existing file or link. A folder is never replaced.
  /// - Returns: false if the name is taken.
  package func place(in target: ExportFolder, as final: String, overwriting: Bool) throws(CommandError) -> Bool {
    if overwriting {
      // A link with that name is replaced, not followed.
      guard renameat(folder.descriptor, name, target.descriptor, final) == 0 else {
        if errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST { return false }
        throw FileFailure.error(target.path(of: final))
      }
      return true
    }
    if linkat(folder.descriptor, name, target.descriptor, final, 0) == 0 {
      // Now, and not in deinit: unlinking changes the file's change time, which the caller records.
      unlinkat(folder.descriptor, name, 0)
      return true
    }
    switch errno {
    case EEXIST: return false
    case EPERM, EMLINK, ENOTSUP, ENOSYS: return try placeWithoutLinks(in: target, as: final)
    default: throw FileFailure.error(target.path(of: final))
    }
  }

  /// Places the file on file systems without hard links: reserves the name with an empty file, then replaces that file.
  private func placeWithoutLinks(in target: ExportFolder, as final: String) throws(CommandError) -> Bool {
    let taken = openat(target.descriptor, final, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard taken >= 0 else {
      if errno == EEXIST { return false }
      throw FileFailure.error(target.path(of: final))
    }
    close(taken)
    guard renameat(folder.descriptor, name, target.descriptor, final) == 0 else {
      throw FileFailure.error(target.path(of: final))
    }
    return true
  }
}
