import Foundation
import ZeroDarkCloud
import ZeroDarkCloudTesting

// Actions of random histories.

extension TestDevice {
  /// Returns the paths of all nodes below a folder, sorted.
  func paths(below folder: String) async throws -> [String] {
    try await tree(versions: false).split(separator: "\n").map { line in
      line.range(of: "  ").map { String(line[..<$0.lowerBound]) } ?? String(line)
    }.filter { $0.hasPrefix(folder + "/") }
  }

  /// Returns the cloud IDs of a node and its subtree, and every line of their content on this device.
  func subtree(_ path: String) async throws -> (ids: [String], texts: [String]) {
    var ids: [String] = []
    var texts: [String] = []
    for path in [path] + (try await paths(below: path)) {
      ids.append(try await node(path).cloudID)
      let data = try await content(of: path)?.data ?? Data()
      texts += String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }
    return (ids, texts)
  }

  /// Queues again the operations that wait because their nodes were deleted elsewhere.
  func reviveAll() async throws {
    try await write { _, cloud in
      for operation in cloud.pendingOperations() {
        cloud.queueDataUpload(forNodeID: operation.nodeID, withChangeset: nil)
      }
    }
  }
}
