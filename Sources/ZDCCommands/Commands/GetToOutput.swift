internal import Foundation
internal import ZeroDarkCloud

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// `zdc get PATH -`: writes the content of one node to standard output.
struct GetToOutput {
  let opened: OpenProfile

  func run(_ entry: TreeEntry, _ path: ZDCTreesystemPath) async throws {
    if entry.node.trunk == nil, entry.isFolder, (entry.node.cloudDataInfo?.dataSize ?? 0) == 0 {
      throw CommandError(
        .usage, "isFolder",
        "\(ShownName.text(path.fullPath())) is a folder; only a file can be written to standard output",
        hint: "zdc get \(ShownName.text(path.fullPath())) FOLDER/")
    }
    guard entry.node.cloudDataInfo != nil, let downloads = opened.zdc.downloadManager else {
      throw CommandError(.noInput, "noContent", "\(ShownName.text(path.fullPath())): no content in the cloud")
    }
    try await write(entry.node, downloads)
  }

  func write(_ node: ZDCNode, _ downloads: ZDCDownloadManager) async throws {
    try Self.write(try await downloads.downloadNodeData(node).cryptoFile)
  }

  /// Writes the content of a downloaded file to standard output, and removes the file.
  static func write(_ file: ZDCCryptoFile) throws {
    defer { try? FileManager.default.removeItem(at: file.fileURL) }
    // All of the content was verified before the first byte is written.
    let output = StandardOutput()
    do { try ZDCFileConversion.decryptCryptoFile(file, to: output) } catch {
      throw output.failure ?? error
    }
  }
}

/// Standard output as a stream. Foundation's stream would print its own error messages.
private final class StandardOutput: OutputStream {
  /// The error of the last write. Quiet if the reader has closed the pipe, as in `zdc get home:/a - | head`.
  private(set) var failure: (any Error)?

  init() { super.init(toMemory: ()) }

  required init(toMemory: ()) { super.init(toMemory: ()) }

  override func open() {}
  override func close() {}
  override var hasSpaceAvailable: Bool { true }
  override var streamError: (any Error)? { failure }

  override func write(_ buffer: UnsafePointer<UInt8>, maxLength length: Int) -> Int {
    while true {
      let count = Foundation.write(STDOUT_FILENO, buffer, length)
      if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
      if count < 0 { failure = errno == EPIPE ? SilentExit(.brokenPipe) : FileFailure.error("standard output") }
      return count
    }
  }
}
