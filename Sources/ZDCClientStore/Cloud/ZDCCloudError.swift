public import ZDCTreesystem

/// A transaction refuses what the app asked for; nothing of that call was done.
///
/// ```swift
/// do { try cloudTransaction.createNode(withPath: path) }
/// catch let error as ZDCCloudError where error.code == .conflict { … }
/// ```
///
/// ``path`` is for the app; the description holds no names, so it may be logged.
public struct ZDCCloudError: Error, Sendable, Hashable {
  public enum Code: String, Sendable, CaseIterable {
    /// An argument makes no sense: a trunk where a node is needed, an empty name, an unknown node.
    case invalidParameter
    /// A node that leads to the path is missing.
    case missingParent
    /// Another node has that name, or the link is taken.
    case conflict
    /// A message without a recipient.
    case missingReceiver
    /// A change of access that has to be made with `recursiveAddShareItem`.
    case unsupportedShare
  }

  public let code: Code
  public let path: ZDCTreesystemPath?
  /// The exact problem, as text.
  public let detail: String

  public init(_ code: Code, path: ZDCTreesystemPath? = nil, detail: String = "") {
    self.code = code
    self.path = path
    self.detail = detail
  }
}

extension ZDCCloudError: CustomStringConvertible {
  public var description: String {
    detail.isEmpty ? code.rawValue : "\(code.rawValue): \(detail)"
  }
}
