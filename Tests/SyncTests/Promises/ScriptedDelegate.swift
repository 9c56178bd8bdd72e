import Foundation
import Synchronization
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The parts that a test makes the app return for a node.
struct Parts: Sendable {
  var data = ZDCData(data: Data())
  var metadata: ZDCData?
  var thumbnail: ZDCData?
}

/// An app that implements no optional methods except for the two sections, and records the times of changes and
/// deletions.
final class ScriptedDelegate: ZeroDarkCloudDelegate {
  private struct State {
    var parts: @Sendable (_ path: String) -> Parts = { _ in Parts() }
    var pushed: [String] = []
    var changes: [String: Date] = [:]
    var deletions: [String: Date?] = [:]
  }

  private let state = Mutex(State())

  init(_ parts: @escaping @Sendable (_ path: String) -> Parts = { _ in Parts() }) {
    state.withLock { $0.parts = parts }
  }

  var pushed: [String] { state.withLock { $0.pushed } }
  /// The node's `lastModified` in the last call for a change, by call and path, such as `new /a`, `modified /a` or
  /// `moved /b`. The path of a move is the new one.
  var changes: [String: Date] { state.withLock { $0.changes } }
  /// The times of deletions, by path. The outer nil means that the node was not deleted, the inner that the time is
  /// unknown.
  var deletions: [String: Date?] { state.withLock { $0.deletions } }

  private func parts(_ path: ZDCTreesystemPath) -> Parts { state.withLock { $0.parts }(path.relativePath()) }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData {
    parts(path).data
  }

  func metadata(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData? {
    parts(path).metadata
  }

  func thumbnail(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData? {
    parts(path).thumbnail
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    state.withLock { $0.pushed.append(path.relativePath()) }
  }

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    note("new", node, path)
  }

  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {
    note("modified", node, path)
  }

  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {
    note("moved", node, newPath)
  }

  private func note(_ call: String, _ node: ZDCNode, _ path: ZDCTreesystemPath) {
    state.withLock { $0.changes["\(call) \(path.relativePath())"] = node.lastModified }
  }

  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {
    state.withLock { $0.deletions[path.relativePath()] = .some(timestamp) }
  }

  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}
}

extension TestWorld {
  /// Runs `body` with a device that uses the given delegate, beside the world's own devices.
  func device(
    _ name: String, delegate: any ZeroDarkCloudDelegate, _ body: @Sendable (TestDevice) async throws -> Void
  ) async throws {
    let device = try await TestDevice(name, server: server, clock: clock, delegate: delegate)
    if let words = words() { try await device.login(words: words) } else { try await device.createAccount() }
    do {
      try await body(device)
    } catch {
      try await device.close()
      throw error
    }
    try await device.close()
  }
}

extension RecordingDelegate {
  /// Returns the lines that begin with one of these words.
  func lines(_ words: String...) -> [String] {
    lines.filter { line in words.contains { line.hasPrefix($0 + " ") } }
  }
}
