internal import Foundation
internal import ZeroDarkCloud

/// `zdc get PATH -`: one content to standard output.
struct GetToOutput {
  let opened: OpenProfile

  func run(_ nodes: [TreeEntry], _ path: ZDCTreesystemPath) async throws {
    guard let entry = nodes.first, entry.node.cloudDataInfo != nil, let downloads = opened.zdc.downloadManager else {
      throw CommandError(.noInput, "noContent", "\(ShownName.text(path.fullPath())): no content in the cloud")
    }
    let file = try await downloads.downloadNodeData(entry.node).cryptoFile
    defer { try? FileManager.default.removeItem(at: file.fileURL) }
    // The whole content was verified before the first byte goes out.
    guard let stream = OutputStream(toFileAtPath: "/dev/stdout", append: true) else {
      throw CommandError(.cannotCreate, "fileFailure", "standard output cannot be written")
    }
    try ZDCFileConversion.decryptCryptoFile(file, to: stream)
  }
}
