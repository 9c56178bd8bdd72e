public import Foundation

/// A call to the app's delegate that threw. It is repeated with the next pull of the tree, and after a launch.
///
/// A node's deletion or update waits for the repeated call, and the node stays unchanged until then. A push does not
/// wait: it has already happened.
///
/// ```swift
/// let failures = try await tree.read { _, cloud in cloud.explainDelegateFailures() }
/// for failure in failures { print(failure.call, failure.error, "\(failure.times) times") }
/// ```
public struct ZDCDelegateFailure: Sendable, Hashable, Codable {
  /// A method of ``ZeroDarkCloudDelegate``, by its base name.
  public enum Call: String, Sendable, Hashable, Codable, CaseIterable {
    case didPushNodeData
    case didSendMessage
    case didDiscoverNewNode, didDiscoverModifiedNode, didDiscoverMovedNode
    case didDiscoverDeletedNode, didDiscoverDeletedDirtyNode
    case didDiscoverConflict
  }

  /// The method that threw.
  public var call: Call
  /// ``ZDCNode/uuid``; nil for a new node, which the app does not have yet.
  public var nodeID: String?
  /// ``ZDCNode/cloudID`` of the node.
  public var cloudID: String
  /// The type of the app's error, without its description, which may hold names.
  public var error: String
  /// The number of times it threw.
  public var times: Int
  /// The time at which the call threw first.
  public var firstDate: Date
  /// The time at which the call threw last.
  public var date: Date

  package init(
    call: Call, nodeID: String? = nil, cloudID: String, error: String, times: Int, firstDate: Date, date: Date
  ) {
    self.call = call
    self.nodeID = nodeID
    self.cloudID = cloudID
    self.error = error
    self.times = times
    self.firstDate = firstDate
    self.date = date
  }
}
