package import ZDCProtocol

/// The objects of the protocol that a ``HostileServer`` may serve, by their form on the wire.
package enum ServedKind: UInt8, Sendable, CaseIterable {
  case commit = 1
  case record, acl, grant
  /// Content of at most 64 KiB, in a bundle.
  case smallContent
  case link
  /// The sealed keyring.
  case keyring
  /// Ciphertext of content, whole or in part.
  case content
  case leafHashes
  /// The proof that some leaves of the content belong to its root.
  case leafProof
}

/// One object of a bundle as bytes, which need not be a valid object.
package struct ServedItem: Sendable, Hashable {
  /// The byte for the item's type; see ``ServedKind``.
  package var type: UInt8
  /// Prefixed with the received times or the blob's ID, as in the bundle.
  package var bytes: [UInt8]

  package init(type: UInt8, bytes: [UInt8]) {
    self.type = type
    self.bytes = bytes
  }

  package init(_ commit: ZoneCommit) {
    self.init(type: ServedKind.commit.rawValue, bytes: [UInt8](repeating: 0, count: 8) + commit.bytes)
  }

  package init(_ record: NodeRecord) {
    self.init(type: ServedKind.record.rawValue, bytes: [UInt8](repeating: 0, count: 16) + record.bytes)
  }

  package init(_ acl: ZoneACL) { self.init(type: ServedKind.acl.rawValue, bytes: acl.bytes) }
  package init(_ grant: Grant) { self.init(type: ServedKind.grant.rawValue, bytes: grant.bytes) }
  package init(_ link: IdentityLink) { self.init(type: ServedKind.link.rawValue, bytes: link.bytes) }

  /// Returns the objects in a bundle's bytes, in order.
  package static func items(of body: [UInt8]) -> [ServedItem] {
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

  /// Returns the bundle of these objects.
  package static func body(of items: [ServedItem]) -> [UInt8] {
    var out = ByteWriter(capacity: items.reduce(0) { $0 + $1.bytes.count + 5 })
    for item in items {
      out.append(item.type)
      out.append(UInt32(item.bytes.count))
      out.append(contentsOf: item.bytes)
    }
    return out.bytes
  }

  package var kind: ServedKind? { ServedKind(rawValue: type) }

  /// The object without the bundle's prefix.
  package var object: [UInt8] {
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

  package var commit: ZoneCommit? { kind == .commit ? try? ZoneCommit(object) : nil }
  package var record: NodeRecord? { kind == .record ? try? NodeRecord(object) : nil }
  package var acl: ZoneACL? { kind == .acl ? try? ZoneACL(object) : nil }
  package var grant: Grant? { kind == .grant ? try? Grant(object) : nil }
  package var link: IdentityLink? { kind == .link ? try? IdentityLink(object) : nil }
  /// The blob ID of small content.
  package var blob: BlobID? { kind == .smallContent ? BlobID(bytes.prefix(16)) : nil }
}

/// An answer on its way to a device, which a ``Lie`` can alter.
package struct ServedAnswer: Sendable {
  package let route: WireRoutes.Route
  package let path: String
  /// The body of the device's request.
  package let request: [UInt8]
  package var status: Int
  /// Header values by lower-case name.
  package var headers: [String: String]
  package var body: [UInt8]
  /// The value of `content-length`, if it is to be false.
  package var announcedLength: UInt64?
  /// Bytes to repeat after the body until the device disconnects.
  package var endlessly: [UInt8] = []

  /// Creates an answer that no server sent.
  package init(
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

  package var isBundle: Bool { headers["content-type"]?.hasPrefix(Bundle.mediaType) == true }

  /// The objects of a bundle, in order. Setting them encodes the body again.
  package var items: [ServedItem] {
    get { ServedItem.items(of: body) }
    set { body = ServedItem.body(of: newValue) }
  }

  /// Returns the objects of one kind: those in a bundle, or the whole body if it is one object.
  func objects(_ kind: ServedKind) -> [ServedItem] {
    if isBundle { return items.filter { $0.type == kind.rawValue } }
    return bareKind == kind && !body.isEmpty ? [ServedItem(type: kind.rawValue, bytes: body)] : []
  }

  /// The kind of a body that is not a bundle.
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

  /// Replaces all objects of one kind. The others keep their positions.
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
