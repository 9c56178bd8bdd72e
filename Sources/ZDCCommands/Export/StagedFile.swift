internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A temporary folder next to the export, where files are completed before they get their final names.
///
/// It is hidden, accessible to its owner only, and removed at the end. A killed export leaves this folder behind, but
/// no partial file under a final name; the next export to the same place removes the folder.
package final class StagingFolder: Sendable {
  private let parent: ExportFolder
  private let folder: ExportFolder
  private let name: String
  /// Locked while the export runs.
  private let lock: Int32
  private static let prefix = ".zdc-get-"

  package init(in parent: ExportFolder) throws(CommandError) {
    self.parent = parent
    Self.removeForgotten(in: parent)
    let id = UUID().uuidString.lowercased()
    name = Self.prefix + id
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
  }

  deinit {
    remove()
    close(lock)
  }

  /// Removes the folder and any files left in it.
  package func remove() {
    Self.remove(name, folder.descriptor, in: parent)
  }

  private static func remove(_ name: String, _ descriptor: Int32, in parent: ExportFolder) {
    for entry in names(in: descriptor) { unlinkat(descriptor, entry, 0) }
    unlinkat(parent.descriptor, name, AT_REMOVEDIR)
  }

  /// Removes the folders of killed exports: those with our owner and name that are not locked. No node can be exported
  /// under such a name.
  private static func removeForgotten(in parent: ExportFolder) {
    for name in names(in: parent.descriptor)
    where name.hasPrefix(prefix) && UUID(uuidString: String(name.dropFirst(prefix.count))) != nil {
      let descriptor = openat(parent.descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      guard descriptor >= 0 else { continue }
      defer { close(descriptor) }
      var info = stat()
      guard fstat(descriptor, &info) == 0, info.st_uid == geteuid(), flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
        continue
      }
      remove(name, descriptor, in: parent)
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
