/// The folders of one export, opened once each, and what is to be restored of them at the end.
package final class ExportTree {
  private let root: ExportFolder
  private var openFolders: [[String]: ExportFolder]
  private var order: [[String]] = []
  private var metadataByPlace: [[String]: FileMetadata] = [:]
  /// Descriptors are few; the folders of the last files are kept open.
  private static let openLimit = 128

  package init(root: ExportFolder) {
    self.root = root
    openFolders = [:]
  }

  /// The folder at a place below the root, made with those that lead to it.
  package func folder(_ place: [String]) throws(CommandError) -> ExportFolder {
    guard let name = place.last else { return root }
    if let known = openFolders[place] { return known }
    let folder = try folder(place.dropLast().map { $0 }).folder(name)
    if openFolders.count >= Self.openLimit { openFolders = [:] }
    openFolders[place] = folder
    return folder
  }

  package func remember(_ metadata: FileMetadata, of place: [String]) {
    if metadataByPlace.updateValue(metadata, forKey: place) == nil { order.append(place) }
  }

  /// Modes and times of folders, deepest first: writing into a folder changes its time, and a folder may be read-only.
  package func restoreFolders() throws(CommandError) {
    for place in order.sorted(by: { $0.count > $1.count }) {
      guard let metadata = metadataByPlace[place] else { continue }
      try folder(place).restore(metadata)
    }
  }
}
