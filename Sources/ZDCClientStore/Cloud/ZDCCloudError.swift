public import ZDCProtocol
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
  /// The reason why the call is not possible. Compare it, or use it in a `switch` with a default.
  public let code: Code
  /// The path that the app gave, if it gave one; for `alreadyGrafted`, the path of the node that is there.
  public let path: ZDCTreesystemPath?
  /// The exact problem, as text without names. Empty if the code says it all.
  public let detail: String

  /// Creates an error, for previews and tests.
  public init(_ code: Code, path: ZDCTreesystemPath? = nil, detail: String = "") {
    self.code = code
    self.path = path
    self.detail = detail
  }
}

extension ZDCCloudError {
  /// The kind of error. Later versions may add codes, so a `switch` needs a `default`.
  ///
  /// ```swift
  /// do {
  ///   try cloud.createNode(withPath: path)
  /// } catch let error as ZDCCloudError where error.code == .missingParent {
  ///   askToDownload(folder)
  /// }
  /// ```
  public struct Code: ErrorCode, Hashable, Sendable, CustomStringConvertible {
    package enum Name: String, CaseIterable, Sendable {
      case invalidParameter, missingParent, conflict, unsupportedShare, unknownUser, notAllowed, missingReceiver
      case alreadyGrafted
    }

    package let name: Name

    package init(_ name: Name) { self.name = name }

    /// The code's name, which is stable.
    public var description: String { name.rawValue }

    /// An argument makes no sense: a trunk where a node is needed, an empty name, an unknown node. Correct the call;
    /// the error's `detail` says which argument.
    public static let invalidParameter = Self(.invalidParameter)
    /// A node that leads to the path is missing. Create it first, in the same transaction, or wait for the first pull.
    public static let missingParent = Self(.missingParent)
    /// Another node has that name, or the object or node has another link. Choose another name, for example with
    /// `conflictFreePath(_:)`, or remove the link.
    public static let conflict = Self(.conflict)
    /// The node cannot have a dedicated share list. Leave `shareList` as it is, and share the root of the branch.
    public static let unsupportedShare = Self(.unsupportedShare)
    /// This device does not know the user. Fetch the user first.
    public static let unknownUser = Self(.unknownUser)
    /// The access list does not allow the local user to do that. Ask a member who may share.
    public static let notAllowed = Self(.notAllowed)
    /// A message has no recipient. Name at least one user.
    public static let missingReceiver = Self(.missingReceiver)
    /// The branch is in the user's tree already, at the error's `path`. Use the node that is there.
    public static let alreadyGrafted = Self(.alreadyGrafted)
  }
}

extension ZDCCloudError.Code {
  /// What failed and what to do about it.
  public var explanation: String {
    switch name {
    case .invalidParameter: "an argument does not fit; correct the call"
    case .missingParent: "a node that leads to the path is missing; create it first, or wait for the first pull"
    case .conflict: "the name or the link is taken; choose another one"
    case .unsupportedShare: "the node cannot have a share list of its own; share the root of its branch"
    case .unknownUser: "this device does not know the user; fetch the user first"
    case .notAllowed: "the access list does not allow it; ask a member who may share"
    case .missingReceiver: "the message has no recipient; name at least one user"
    case .alreadyGrafted: "the branch is in the tree already; use the node that is there"
    }
  }
}

extension ZDCCloudError: CustomStringConvertible {
  /// What failed and what to do about it, without names.
  public var description: String {
    detail.isEmpty ? code.explanation : "\(code.explanation) (\(detail))"
  }
}
