internal import Foundation
internal import ZeroDarkCloud

/// A node as `ls` and `tree` show it:
/// `{"cloudID","kind"?,"mode"?,"modified"?,"name","path","size"?,"state","version"?,"dataVersion"?}`
package struct ListedNode: Encodable, Sendable, Hashable {
  package var path: String
  package var name: String
  package var cloudID: String
  /// The size of its data in bytes; nil without content.
  package var size: UInt64?
  /// The record's version in the cloud; nil before the first upload.
  package var version: String?
  /// The content's version in the cloud.
  package var dataVersion: String?
  /// `synced`; `queued` if operations wait for their turn; `held` if one needs a decision; `quarantined` if the newest
  /// version cannot be opened.
  package var state: String
  /// When the server accepted the newest version, in ISO 8601.
  package var modified: String?
  /// `file` or `folder`, as far as this device knows.
  package var kind: String?
  /// Permission bits in octal, as far as this device knows.
  package var mode: String?

  init(_ entry: TreeEntry) {
    let node = entry.node
    path = entry.path.fullPath()
    name = node.name ?? entry.path.trunk.rawValue
    cloudID = node.cloudID
    size = node.cloudDataInfo?.dataSize
    version = node.eTag_rcrd
    dataVersion = node.eTag_data
    state = entry.state
    modified = node.lastModified.map { $0.formatted(.iso8601) }
    kind = entry.isFolder ? "folder" : entry.record.map { _ in "file" }
    mode = entry.record.map { String($0.mode, radix: 8) }
  }

  var isFolder: Bool { kind == "folder" }
}

/// `zdc ls` and `zdc tree`: list the local copy of the tree without asking the server.
package enum ListCommands {
  package static func list(_ options: ProfileOptions, path: String, long: Bool) async throws {
    let path = try NodePath.parse(path)
    let isDetailed = long || options.output.isJSON
    let (entries, left) = try await entries(options, path) { try $0.listing(at: path, isDetailed: isDetailed) }
    var lines = LineBuffer()
    for entry in entries {
      if options.output.isJSON {
        lines.append(try Output.json(ListedNode(entry)))
      } else {
        lines.append(long ? longLine(ListedNode(entry)) : shortLine(entry))
      }
    }
    lines.flush()
    try finish(left, options.output)
  }

  package static func tree(_ options: ProfileOptions, path: String) async throws {
    let path = try NodePath.parse(path)
    let (entries, left) = try await entries(options, path) { try $0.subtree(at: path) }
    var lines = LineBuffer()
    if options.output.isJSON {
      for entry in entries where entry.node.trunk == nil { lines.append(try Output.json(ListedNode(entry))) }
    } else {
      for line in TreeDrawing.lines(entries.map { ($0.path.pathComponents.count, label($0, top: path)) }) {
        lines.append(line)
      }
    }
    lines.flush()
    try finish(left, options.output)
  }

  /// A list with missing nodes, or of a tree that does not follow its server, is not a success.
  private static func finish(_ left: [String], _ output: Output) throws {
    guard !left.isEmpty else { return }
    for line in left { output.warning(line) }
    throw SilentExit(.failure)
  }

  /// Returns the nodes, and a line for each reason why there may be others.
  private static func entries(
    _ options: ProfileOptions, _ path: ZDCTreesystemPath,
    _ read: @escaping @Sendable (ReadableTree) throws -> [TreeEntry]
  ) async throws -> ([TreeEntry], [String]) {
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    let entries = try await opened.requiringTree(user) {
      try await opened.reader.read { transaction in try read(opened.cloud(transaction, user)) }
    }
    let outdated = try await opened.outdatedTrees(user).around(path)
    let unreadable = try await opened.unreadableNodes(user).below(path)
    try await opened.close()
    return (entries, outdated.lines + unreadable.lines)
  }

  private static func shortLine(_ entry: TreeEntry) -> String {
    ShownName.text(entry.node.name ?? entry.path.trunk.rawValue) + (entry.isFolder ? "/" : "")
  }

  private static func longLine(_ node: ListedNode) -> String {
    let columns = [
      padded(node.mode ?? "-", 5), padded(node.size.map(Amounts.bytes) ?? "-", 9, left: true),
      padded(node.modified ?? "-", 21), padded(node.state, 11),
    ]
    return columns.joined(separator: " ") + " " + ShownName.text(node.name) + (node.isFolder ? "/" : "")
  }

  private static func padded(_ text: String, _ width: Int, left: Bool = false) -> String {
    let space = String(repeating: " ", count: max(0, width - text.count))
    return left ? space + text : text + space
  }

  private static func label(_ entry: TreeEntry, top: ZDCTreesystemPath) -> String {
    let node = ListedNode(entry)
    if entry.path == top { return ShownName.text(entry.path.fullPath()) }
    let state = node.state == "synced" ? "" : "  (\(node.state))"
    return ShownName.text(node.name) + (node.isFolder ? "/" : "") + state
  }
}
