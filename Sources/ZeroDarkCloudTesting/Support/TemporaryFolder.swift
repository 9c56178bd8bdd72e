public import Foundation

/// A folder that is deleted with this object.
///
/// It is in memory where the system supports that: a test's files need not persist, and synced writes to a disk would
/// take most of its time.
///
/// Keep the object as long as the folder is needed:
///
/// ```swift
/// let temporary = try TemporaryFolder()
/// let config = ZDCConfig(
///   primaryTreeID: "com.example.todo", serverURL: server.url, databaseDirectory: temporary.url)
/// ```
public final class TemporaryFolder: Sendable {
  /// The location of the folder.
  public let url: URL

  /// Creates an empty folder, in memory where the system has a file system for that.
  ///
  /// - Throws: The error of the file system.
  public init() throws {
    let memory = URL(fileURLWithPath: "/dev/shm", isDirectory: true)
    let isThere = FileManager.default.isWritableFile(atPath: memory.path)
    url = (isThere ? memory : FileManager.default.temporaryDirectory)
      .appendingPathComponent("zdc-testing-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    do { try FileManager.default.removeItem(at: url) } catch {
      FileHandle.standardError.write(Data("cannot remove a test's folder: \(error)\n".utf8))
    }
  }

  /// Creates a folder in this one.
  public func folder(_ name: String) throws -> URL {
    let folder = url.appendingPathComponent(name, isDirectory: true)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return folder
  }
}
