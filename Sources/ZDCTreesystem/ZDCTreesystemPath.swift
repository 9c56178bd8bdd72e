/// The location of a node in its tree: a trunk and the names below it.
///
/// The path is an array of names, so no character is special: a name may contain slashes, dots or spaces. The text form
/// is for people and command lines; see ``fullPath()``.
///
/// ```swift
/// let path = ZDCTreesystemPath(pathComponents: ["foo", "bar"])
/// let child = path.appendingComponent("soap")
/// print(child.fullPath())  // home:/foo/bar/soap
/// ```
public struct ZDCTreesystemPath: Sendable, Hashable, Codable {
  /// The container in which the path begins.
  public let trunk: ZDCTreesystemTrunk
  /// The names from the trunk down; empty for the trunk itself.
  public let pathComponents: [String]

  /// Creates a path.
  ///
  /// A component may have any characters: it is one name, never split at slashes.
  ///
  /// ```swift
  /// let note = ZDCTreesystemPath(pathComponents: ["Notes", "24/12"])
  /// let theme = ZDCTreesystemPath(pathComponents: ["theme"], trunk: .prefs)
  /// ```
  ///
  /// - Parameters:
  ///   - pathComponents: The names from the trunk down; empty for the trunk itself.
  ///   - trunk: The container in which the path begins.
  public init(pathComponents: [String], trunk: ZDCTreesystemTrunk = .home) {
    self.trunk = trunk
    self.pathComponents = pathComponents
  }

  /// Whether this is the trunk itself.
  ///
  /// ```swift
  /// if path.isTrunk { show(["All notes"]) } else { show([path.nodeName]) }
  /// ```
  public var isTrunk: Bool { pathComponents.isEmpty }

  /// The last name; the trunk's own name for a trunk.
  ///
  /// ```swift
  /// print(ZDCTreesystemPath(pathComponents: ["Photos", "beach.jpg"]).nodeName)  // beach.jpg
  /// ```
  public var nodeName: String { pathComponents.last ?? trunk.rawValue }

  /// Returns the path one level up; nil for a trunk.
  ///
  /// ```swift
  /// guard let folder = path.parent() else { return }  // a trunk
  /// print(folder.fullPath())
  /// ```
  public func parent() -> ZDCTreesystemPath? {
    guard !isTrunk else { return nil }
    return ZDCTreesystemPath(pathComponents: Array(pathComponents.dropLast()), trunk: trunk)
  }

  /// Returns the path one level up; nil for a trunk. The same as ``parent()``.
  public func parentPath() -> ZDCTreesystemPath? { parent() }

  /// Returns the path of a child with that name.
  ///
  /// ```swift
  /// let photos = ZDCTreesystemPath(pathComponents: ["Photos"])
  /// try cloud.createNode(withPath: photos.appendingComponent("beach.jpg"))
  /// ```
  public func appendingComponent(_ name: String) -> ZDCTreesystemPath {
    ZDCTreesystemPath(pathComponents: pathComponents + [name], trunk: trunk)
  }

  /// Returns whether `other` is this path or is below it.
  ///
  /// ```swift
  /// let photos = ZDCTreesystemPath(pathComponents: ["Photos"])
  /// print(photos.contains(photos.appendingComponent("beach.jpg")))  // true
  /// print(photos.contains(ZDCTreesystemPath(pathComponents: ["Photos 2"])))  // false: another name
  /// ```
  public func contains(_ other: ZDCTreesystemPath) -> Bool {
    trunk == other.trunk && other.pathComponents.starts(with: pathComponents)
  }
}
