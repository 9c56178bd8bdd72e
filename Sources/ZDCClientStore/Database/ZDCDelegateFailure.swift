public import Foundation

/// A call of the app's delegate that threw. It is made again: with the next pull of the tree, and after a launch.
///
/// A deletion, and what is new of a node, waits for it: the node stays as it was. A push does not: it has happened.
public struct ZDCDelegateFailure: Sendable, Hashable, Codable {
  public enum Call: String, Sendable, Hashable, Codable, CaseIterable {
    case didPushNodeData
    case didDiscoverNewNode, didDiscoverModifiedNode, didDiscoverMovedNode
    case didDiscoverDeletedNode, didDiscoverDeletedDirtyNode
    case didDiscoverConflict
  }

  public var call: Call
  /// ``ZDCNode/uuid``; nil for a node that is new, and that the app does not have therefore.
  public var nodeID: String?
  public var cloudID: String
  /// The type of the app's error; its description may hold names.
  public var error: String
  /// How often it threw.
  public var times: Int
  public var firstDate: Date
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
