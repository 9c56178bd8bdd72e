internal import Foundation
internal import ZeroDarkCloud

/// `zdc restore PATH --to FILE`: writes an earlier version of a node to a file, and leaves the tree as it is.
package struct VersionCopy: Sendable {
  /// `{"bytes","file","path","version"}`
  struct Report: Encodable, Sendable {
    var path: String
    /// The id of the version.
    var version: String
    var file: String
    var bytes: UInt64
  }

  let path: String
  let choice: HistoryCommands.Choice
  /// A path, or `-` for standard output.
  let destination: String

  package init(path: String, choice: HistoryCommands.Choice, destination: String) {
    (self.path, self.choice, self.destination) = (path, choice, destination)
  }

  package func run(_ options: ProfileOptions) async throws {
    let path = try NodePath.parse(path)
    guard destination == "-" || !AbsolutePath.name(of: destination).isEmpty else { throw NodePath.empty }
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    try await engine.pull()
    let version = try await engine.version(of: try await engine.node(at: path), path, choice)
    guard let size = version.content?.dataSize, let downloads = opened.zdc.downloadManager else {
      throw CommandError(.noInput, "noContent", "\(ShownName.text(path.fullPath())): this version has no content")
    }
    let file = try await download(version, downloads, options.output)
    if destination == "-" { try GetToOutput.write(file) } else { try place(file) }
    try await opened.close()
    guard destination != "-" else { return }
    try options.output.object(Report(path: path.fullPath(), version: version.id, file: destination, bytes: size))
    options.output.note("wrote \(ShownName.text(destination)) (\(Amounts.bytes(size)))")
  }

  private func download(
    _ version: ZDCNodeVersion, _ downloads: ZDCDownloadManager, _ output: Output
  ) async throws -> ZDCCryptoFile {
    let progress = ProgressDisplay(ProgressLine(verb: "get", itemsTotal: 1), isEnabled: output.showsProgress)
    defer { progress.finish() }
    return try await downloads.downloadNodeData(of: version) { received, total in
      progress.update { ($0.bytesDone, $0.bytesTotal) = (received, total) }
    }
  }

  /// Gives the file its name when it is complete. Never replaces a file.
  private func place(_ file: ZDCCryptoFile) throws {
    defer { try? FileManager.default.removeItem(at: file.fileURL) }
    let absolute = AbsolutePath.of(destination)
    let folder = try ExportFolder.open(AbsolutePath.folder(of: absolute))
    let staging = try StagingFolder(in: folder)
    // An interrupted zdc get may have left some.
    staging.keepDownloads()
    let (name, path) = staging.newPath()
    try ZDCFileConversion.decryptCryptoFile(file, to: URL(fileURLWithPath: path))
    let staged = try staging.adopt(name)
    let metadata = FileMetadata([UInt8](try ZDCFileConversion.decryptMetadata(of: file)))
    if let metadata { try staged.restore(metadata) } else { try staged.restoreStandardMode() }
    guard try staged.place(in: folder, as: AbsolutePath.name(of: absolute), overwriting: false) else {
      throw CommandError(
        .cannotCreate, "fileExists", "\(ShownName.text(destination)) exists already", hint: "name another file")
    }
  }
}
