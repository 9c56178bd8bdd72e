extension ZDCTreesystemPath: CustomStringConvertible {
  /// Returns `home:/a/b`. A slash or backslash inside a name is escaped with a backslash, so that ``init(_:)`` parses
  /// the same path.
  ///
  /// ```swift
  /// print(ZDCTreesystemPath(pathComponents: ["Music", "AC/DC"]).fullPath())  // home:/Music/AC\/DC
  /// ```
  public func fullPath() -> String { "\(trunk.rawValue):\(relativePath())" }

  /// Returns `/a/b`, without the trunk.
  ///
  /// ```swift
  /// print(ZDCTreesystemPath(pathComponents: ["Photos", "beach.jpg"]).relativePath())  // /Photos/beach.jpg
  /// ```
  public func relativePath() -> String {
    "/" + pathComponents.map(Self.escape).joined(separator: "/")
  }

  /// The same as ``fullPath()``.
  public var description: String { fullPath() }

  /// Parses `home:/a/b`, `~/a/b` or `/a/b`; the last two are below home.
  ///
  /// Repeated and trailing slashes are ignored. `.` and `..` are ordinary names. Returns nil for anything else.
  ///
  /// For text that a user types. For names that the app has, use ``init(pathComponents:trunk:)``.
  ///
  /// ```swift
  /// let photo = ZDCTreesystemPath("/Photos/beach.jpg")  // home:/Photos/beach.jpg
  /// let theme = ZDCTreesystemPath("prefs:/theme")
  /// let band = ZDCTreesystemPath(#"/Music/AC\/DC"#)  // two names: "Music", "AC/DC"
  /// ```
  public init?(_ text: String) {
    if text == "~" {
      self.init(pathComponents: [])
    } else if text.utf8.first == UInt8(ascii: "/") {
      self.init(pathComponents: Self.split(text))
    } else if text.hasPrefix("~/") {
      self.init(pathComponents: Self.split(String(text.dropFirst())))
    } else {
      self.init(withTrunk: text)
    }
  }

  private init?(withTrunk text: String) {
    let utf8 = text.utf8
    guard
      let colon = utf8.firstIndex(of: UInt8(ascii: ":")),
      let trunk = ZDCTreesystemTrunk(rawValue: String(text[..<colon]))
    else { return nil }
    let rest = utf8[utf8.index(after: colon)...]
    guard rest.isEmpty || rest.first == UInt8(ascii: "/") else { return nil }
    self.init(pathComponents: Self.split(String(decoding: rest, as: UTF8.self)), trunk: trunk)
  }

  private static let slash = UInt8(ascii: "/")
  private static let backslash = UInt8(ascii: "\\")

  // Works on bytes, not characters: a combining mark at the start of a name would merge with the slash before it.
  private static func escape(_ name: String) -> String {
    var bytes: [UInt8] = []
    for byte in name.utf8 {
      if byte == slash || byte == backslash { bytes.append(backslash) }
      bytes.append(byte)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func split(_ text: String) -> [String] {
    var components: [String] = []
    var current: [UInt8] = []
    var bytes = Array(text.utf8)[...]
    while let byte = bytes.popFirst() {
      if byte == slash {
        if !current.isEmpty { components.append(String(decoding: current, as: UTF8.self)) }
        current = []
      } else if byte == backslash, let next = bytes.first, next == slash || next == backslash {
        current.append(next)
        bytes.removeFirst()
      } else {
        current.append(byte)
      }
    }
    if !current.isEmpty { components.append(String(decoding: current, as: UTF8.self)) }
    return components
  }
}
