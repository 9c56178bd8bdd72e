internal import ZDCProtocol

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

// A server whose large content is in an object store keeps only an ID of its own in the folder.
extension ContentFolder {
  static let ownerFile = "object-store-owner"

  /// The ID under which this server owns objects; nil if its large content is in the folder.
  package func objectStoreOwner() throws -> String? { try Self.objectStoreOwner(of: path) }

  static func objectStoreOwner(of folder: String) throws -> String? {
    let path = "\(folder)/\(ownerFile)"
    guard let bytes = FileManager.default.contents(atPath: path) else {
      // A file that exists and cannot be read must not look like none: the server would begin with another ID.
      guard !FileManager.default.fileExists(atPath: path) else { throw StoreOpenError(.noPermission, path: path) }
      return nil
    }
    let text = String(decoding: bytes, as: UTF8.self)
    guard BlobID(text: text) != nil else { throw StoreOpenError(.damaged, path: path) }
    return text
  }

  package static func newObjectStoreOwner() -> String { BlobID.random().text }

  /// Stores the ID, by default a new one. The folder must not have large content.
  ///
  /// - Throws: ``StoreOpenError`` if it has, because the server would lose it.
  @discardableResult
  package func createObjectStoreOwner(_ owner: String = newObjectStoreOwner()) async throws -> String {
    try await blobs.forEachBatch { [ownerPath] found in
      guard found.isEmpty else {
        throw StoreOpenError(.other("the data folder has large content, which cannot be moved yet"), path: ownerPath)
      }
    }
    let file = try OpenFile(ownerPath, .create)
    try file.write(Array(owner.utf8), at: 0)
    try file.synchronize()
    try OpenFile(path, .folder).synchronize()
    return owner
  }

  /// Removes an ID under which nothing was stored.
  package func removeObjectStoreOwner() throws { try OpenFile.remove(ownerPath) }

  private var ownerPath: String { "\(path)/\(Self.ownerFile)" }
}
