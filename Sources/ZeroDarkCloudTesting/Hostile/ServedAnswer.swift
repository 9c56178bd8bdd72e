public import ZDCProtocol

/// What a ``HostileServer`` may serve: the objects of the protocol, by how they travel.
public enum ServedKind: UInt8, Sendable, CaseIterable {
  case commit = 1
  case record, acl, grant
  /// Content of at most 64 KiB, in a bundle.
  case smallContent
  case link
  /// The sealed keyring.
  case keyring
  /// A content's ciphertext, whole or in part.
  case content
  case leafHashes
  /// That some leaves of a content are what its root says.
  case leafProof
}

/// One object of a bundle as its bytes, which need not be those of any object.
public struct ServedItem: Sendable, Hashable {
  /// The byte that says what follows; see ``ServedKind``.
  public var type: UInt8
  /// With the received times or the blob's id in front, as the bundle has them.
  public var bytes: [UInt8]

  public init(type: UInt8, bytes: [UInt8]) {
    self.type = type
    self.bytes = bytes
  }

  public init(_ commit: ZoneCommit) {
    self.init(type: ServedKind.commit.rawValue, bytes: [UInt8](repeating: 0, count: 8) + commit.bytes)
  }

  public init(_ record: NodeRecord) {
    self.init(type: ServedKind.record.rawValue, bytes: [UInt8](repeating: 0, count: 16) + record.bytes)
  }

  public init(_ acl: ZoneACL) { self.init(type: ServedKind.acl.rawValue, bytes: acl.bytes) }
  public init(_ grant: Grant) { self.init(type: ServedKind.grant.rawValue, bytes: grant.bytes) }
  public init(_ link: IdentityLink) { self.init(type: ServedKind.link.rawValue, bytes: link.bytes) }

  /// The objects of a bundle's bytes, in order.
  public static func items(of body: [UInt8]) -> [ServedItem] {
    var items: [ServedItem] = []
    var rest = body[...]
    while rest.count >= 5 {
      let length = rest.dropFirst().prefix(4).reduce(0) { $0 << 8 | Int($1) }
      guard rest.count >= 5 + length, let type = rest.first else { break }
      items.append(ServedItem(type: type, bytes: Array(rest.dropFirst(5).prefix(length))))
      rest = rest.dropFirst(5 + length)
    }
    return items
  }

  /// The bundle of these objects.
  public static func body(of items: [ServedItem]) -> [UInt8] {
    var out = ByteWriter(capacity: items.reduce(0) { $0 + $1.bytes.count + 5 })
    for item in items {
      out.append(item.type)
      out.append(UInt32(item.bytes.count))
      out.append(contentsOf: item.bytes)
    }
    return out.bytes
  }

  public var kind: ServedKind? { ServedKind(rawValue: type) }

  /// The object without what the bundle puts in front of it.
  public var object: [UInt8] {
    get { Array(bytes.dropFirst(prefixLength)) }
    set { bytes = bytes.prefix(prefixLength) + newValue }
  }

  private var prefixLength: Int {
    switch kind {
    case .commit: 8
    case .record, .smallContent: 16
    default: 0
    }
  }

  public var commit: ZoneCommit? { kind == .commit ? try? ZoneCommit(object) : nil }
  public var record: NodeRecord? { kind == .record ? try? NodeRecord(object) : nil }
  public var acl: ZoneACL? { kind == .acl ? try? ZoneACL(object) : nil }
  public var grant: Grant? { kind == .grant ? try? Grant(object) : nil }
  public var link: IdentityLink? { kind == .link ? try? IdentityLink(object) : nil }
  /// Of a small content.
  public var blob: BlobID? { kind == .smallContent ? BlobID(bytes.prefix(16)) : nil }
}

/// An answer on its way to a device, in the hands of a ``Lie``.
public struct ServedAnswer: Sendable {
  public let route: WireRoutes.Route
  public let path: String
  /// What the device had sent.
  public let request: [UInt8]
  public var status: Int
  /// By lower-case name.
  public var headers: [String: String]
  public var body: [UInt8]
  /// What `content-length` says, if it is not to be the truth.
  public var announcedLength: UInt64?
  /// Bytes that come behind the body, again and again, until the device hangs up.
  public var endlessly: [UInt8] = []

  /// An answer that no server gave.
  public init(
    to route: WireRoutes.Route, request: [UInt8] = [], status: Int, headers: [String: String], body: [UInt8] = []
  ) {
    self.init(
      route: route, path: route.pattern, request: request, status: status, headers: headers, body: body)
  }

  init(
    route: WireRoutes.Route, path: String, request: [UInt8], status: Int, headers: [String: String], body: [UInt8]
  ) {
    self.route = route
    self.path = path
    self.request = request
    self.status = status
    self.headers = headers
    self.body = body
  }

  public var isBundle: Bool { headers["content-type"]?.hasPrefix(Bundle.mediaType) == true }

  /// The objects of a bundle, in order; setting them writes the body anew.
  public var items: [ServedItem] {
    get { ServedItem.items(of: body) }
    set { body = ServedItem.body(of: newValue) }
  }

  /// The objects of one kind: those of a bundle, or the body that is one itself.
  func objects(_ kind: ServedKind) -> [ServedItem] {
    if isBundle { return items.filter { $0.type == kind.rawValue } }
    return bareKind == kind && !body.isEmpty ? [ServedItem(type: kind.rawValue, bytes: body)] : []
  }

  /// What a body is that is no bundle.
  private var bareKind: ServedKind? {
    guard status == 200 || status == 206 else { return nil }
    switch route.pattern {
    case Routes.keyring: return .keyring
    case Routes.content: return .content
    case Routes.leafHashes: return .leafHashes
    case Routes.leafProof: return .leafProof
    default: return nil
    }
  }

  /// Replaces all objects of one kind; the others keep their places.
  mutating func replace(_ kind: ServedKind, with objects: [ServedItem]) {
    guard isBundle else {
      body = objects.flatMap(\.bytes)
      return
    }
    var rest = objects[...]
    var all: [ServedItem] = []
    for item in items {
      if item.type != kind.rawValue { all.append(item) } else if let next = rest.popFirst() { all.append(next) }
    }
    items = all + rest
  }
}
