internal import Foundation
internal import Synchronization
internal import ZeroDarkCloud

/// Downloads of large content, directly into files.
extension ExportRun {
  /// Several concurrent downloads, because each has a round trip during which nothing else would be transferred.
  private static let largeAtOnce = 4

  private struct LargeDownload: Sendable {
    var node: ZDCNode
    /// The name of the staged file.
    var name: String
    /// The number of consecutive broken connections when this download began.
    var cutsBefore: Int
    var metadata: Result<Data, any Error>
  }

  func fetchLarge(_ wanted: [ExportEntry]) async throws {
    guard let downloads = opened.zdc.downloadManager else { return }
    let received = ReceivedBytes(before: report.bytes, progress)
    begin(wanted)
    var rest = wanted[...]
    try await withThrowingTaskGroup(of: LargeDownload.self) { group in
      func startNext() {
        guard let node = rest.popFirst()?.node else { return }
        let (name, path) = staging.newPath()
        group.addTask { [cutsInRow] in
          LargeDownload(
            node: node, name: name, cutsBefore: cutsInRow,
            metadata: await Self.metadata(of: node, writing: path, downloads, received))
        }
      }
      for _ in 0..<Self.largeAtOnce { startNext() }
      while let download = try await group.next() {
        try await finish(download)
        startNext()
      }
    }
  }

  private static func metadata(
    of node: ZDCNode, writing path: String, _ downloads: ZDCDownloadManager, _ received: ReceivedBytes
  ) async -> Result<Data, any Error> {
    do {
      let url = URL(fileURLWithPath: path)
      return .success(
        try await downloads.downloadNodeData(node, toFile: url) { received.note($0, of: $1, node.uuid) }.metadata)
    } catch { return .failure(error) }
  }

  private func finish(_ download: LargeDownload) async throws {
    do {
      let metadata = FileMetadata([UInt8](try download.metadata.get()))
      try place(download.node, metadata) { try self.staging.adopt(download.name) }
      cutsInRow = 0
    } catch { try noteFailure(error, download.node, cutsBefore: download.cutsBefore) }
    advance()
    try await records.storeIfMany()
  }
}

/// The bytes received by the downloads of one export, for its progress line.
private final class ReceivedBytes: Sendable {
  private struct State {
    var sum: UInt64
    var byNode: [String: UInt64] = [:]
  }

  private let progress: ProgressDisplay
  private let state: Mutex<State>

  init(before: UInt64, _ progress: ProgressDisplay) {
    self.progress = progress
    state = Mutex(State(sum: before))
  }

  func note(_ received: UInt64, of total: UInt64, _ node: String) {
    let sum = state.withLock { state in
      let received = min(received, total)
      state.sum += received
      state.sum -= min(state.byNode.updateValue(received, forKey: node) ?? 0, state.sum)
      return state.sum
    }
    progress.update { $0.bytesDone = max($0.bytesDone, sum) }
  }
}
