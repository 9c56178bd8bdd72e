/// The folders of one export, each opened once, and the metadata to restore on them at the end.
package final class ExportTree {
  private let root: ExportFolder
  private var openFolders: [[String]: ExportFolder]
  private var order: [[String]] = []
  private var metadataByPlace: [[String]: FileMetadata] = [:]
  /// Limits open descriptors; the folders of the most recent files stay open.
  private static let openLimit = 128

  package init(root: ExportFolder) {
    self.root = root
    openFolders = [:]
  }

  /// Returns the folder at a place below the root, and creates it and its parents if they are missing.
  package func folder(_ place: [String]) throws(CommandError) -> ExportFolder {
    guard let name = place.last else { return root }
    if let known = openFolders[place] { return known }
    let folder = try folder(place.dropLast().map { $0 }).folder(name)
    if openFolders.count >= Self.openLimit { openFolders = [:] }
    openFolders[place] = folder
    return folder
  }

  /// Returns when the disk has all that was written into these folders.
  func flush() throws(CommandError) { try root.flush() }

  package func remember(_ metadata: FileMetadata, of place: [String]) {
    if metadataByPlace.updateValue(metadata, forKey: place) == nil { order.append(place) }
  }

  /// Restores modes and times of folders, deepest first: writing into a folder changes its time, and a folder may be
  /// read-only.
  ///
  /// - Parameter isDue: Which folders to restore.
  /// - Returns: The folders for which that failed.
  package func restoreFolders(
    where isDue: (FileMetadata) -> Bool = { _ in true }
  ) -> [(place: [String], error: CommandError)] {
    var failed: [(place: [String], error: CommandError)] = []
    for place in order.sorted(by: { $0.count > $1.count }) {
      guard let metadata = metadataByPlace[place], isDue(metadata) else { continue }
      do throws(CommandError) { try folder(place).restore(metadata) } catch { failed.append((place, error)) }
    }
    return failed
  }
}
