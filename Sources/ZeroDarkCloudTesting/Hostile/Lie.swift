internal import Foundation
package import ZDCProtocol

/// A false answer of a ``HostileServer``.
///
/// ```swift
/// .turnBit(.content, at: 100)                       // one bit of all content
/// .withhold(.record) { $0.record?.fields.node == id }
/// .rewrite(.commit) { $0.removeFirst() }            // a gap in every page of the log
/// .refuse("GET", "/v1/account/keyring", status: 404, code: "notFound")
/// ```
package struct Lie: Sendable {
  enum Act: Sendable {
    /// Alters an answer. Returns whether there was something to alter.
    case alter(@Sendable (inout ServedAnswer) throws -> Bool)
    /// Answers in the server's place, without forwarding the request. Returns nil for other requests.
    case fabricate(@Sendable (_ route: WireRoutes.Route, _ path: String, _ request: [UInt8]) -> ServedAnswer?)
    /// Alters the event stream, event by event.
    case events(@Sendable ([String]) -> [String])
  }

  let act: Act

  /// Creates a lie from a function that alters any answer and returns whether it did.
  package init(_ alter: @escaping @Sendable (inout ServedAnswer) throws -> Bool) {
    act = .alter(alter)
  }

  private init(act: Act) {
    self.act = act
  }

  // MARK: Objects

  package typealias Choice = @Sendable (ServedItem) -> Bool

  /// Replaces the list of all objects of a kind in an answer.
  package static func rewrite(
    _ kind: ServedKind, _ change: @escaping @Sendable (inout [ServedItem]) throws -> Void
  ) -> Lie {
    Lie { answer in
      let before = answer.objects(kind)
      guard !before.isEmpty else { return false }
      var after = before
      try change(&after)
      guard after != before else { return false }
      answer.replace(kind, with: after)
      return true
    }
  }

  /// Changes the bytes of each chosen object.
  package static func change(
    _ kind: ServedKind, where choice: @escaping Choice = { _ in true },
    _ change: @escaping @Sendable (inout [UInt8]) throws -> Void
  ) -> Lie {
    rewrite(kind) { items in
      for index in items.indices where choice(items[index]) {
        var object = items[index].object
        try change(&object)
        items[index].object = object
      }
    }
  }

  /// Flips one bit in the byte at `offset`, which counts from the end if it is negative.
  package static func turnBit(_ kind: ServedKind, at offset: Int, where choice: @escaping Choice = { _ in true }) -> Lie
  {
    change(kind, where: choice) { bytes in
      let index = offset < 0 ? bytes.count + offset : offset
      if bytes.indices.contains(index) { bytes[index] ^= 1 }
    }
  }

  package static func substitute(
    _ kind: ServedKind, with object: [UInt8], where choice: @escaping Choice = { _ in true }
  ) -> Lie {
    change(kind, where: choice) { $0 = object }
  }

  /// Omits the chosen objects.
  package static func withhold(_ kind: ServedKind, where choice: @escaping Choice = { _ in true }) -> Lie {
    rewrite(kind) { $0.removeAll(where: choice) }
  }

  /// Adds objects to every page of the zone's log, after the existing objects of their kind.
  package static func add(_ items: [ServedItem], to zone: ZoneID) -> Lie {
    Lie { answer in
      guard answer.isBundle, answer.isAbout(zone), answer.route.pattern == Routes.zoneCommits else { return false }
      // Commits go before the records, as an honest server orders them.
      let old = answer.items
      answer.items =
        old.filter { $0.kind != .record } + items.filter { $0.kind != .record } + old.filter { $0.kind == .record }
        + items.filter { $0.kind == .record }
      return true
    }
  }

  /// Reports another head for a zone, in its pages and in the list of zones. `hasMore` also overrides whether the page
  /// ends before the head.
  package static func head(_ zone: ZoneID, seq: UInt64, hash: CommitHash, hasMore: Bool? = nil) -> Lie {
    Lie { answer in
      if answer.route.pattern == Routes.zones {
        return try answer.changeZones { zones in
          for index in zones.indices where zones[index].zone == zone {
            (zones[index].seq, zones[index].head) = (seq, hash)
          }
        }
      }
      guard answer.isAbout(zone), answer.headers[WireHeaders.zoneHead] != nil else { return false }
      answer.headers[WireHeaders.zoneHead] = "\(seq):\(hash.text)"
      if let hasMore { answer.headers[WireHeaders.more] = hasMore ? "1" : nil }
      return true
    }
  }

  /// Returns an empty list of the user's zones.
  package static let noZones = Lie { answer in
    guard answer.route.pattern == Routes.zones else { return false }
    return try answer.changeZones { $0 = [] }
  }

  // MARK: Answers

  /// Answers with an error in the server's place.
  package static func refuse(_ method: String, _ pattern: String, status: Int, code: String) -> Lie {
    fabricate(method, pattern, status: status, json: #"{"code":"\#(code)","message":"by script","retryable":false}"#)
  }

  /// Answers a request without forwarding it to the server.
  package static func fabricate(_ method: String, _ pattern: String, status: Int = 200, json: String) -> Lie {
    fabricate(method, pattern) { route, request in
      ServedAnswer(
        to: route, request: request, status: status, headers: ["content-type": "application/json"],
        body: Array(json.utf8))
    }
  }

  /// Answers a request without forwarding it to the server. The closure creates the answer, or returns nil to let the
  /// request pass.
  package static func fabricate(
    _ method: String, _ pattern: String,
    _ answer: @escaping @Sendable (_ route: WireRoutes.Route, _ request: [UInt8]) -> ServedAnswer?
  ) -> Lie {
    Lie(
      act: .fabricate { route, _, request in
        route.method == method && route.pattern == pattern ? answer(route, request) : nil
      })
  }

  /// Changes the whole body of answers on a route.
  package static func body(
    _ method: String, _ pattern: String, _ change: @escaping @Sendable (inout [UInt8]) throws -> Void
  ) -> Lie {
    Lie { answer in
      guard answer.route.method == method, answer.route.pattern == pattern else { return false }
      try change(&answer.body)
      return true
    }
  }

  // MARK: Sizes

  /// Announces a length that differs from the body's.
  package static func announce(_ length: UInt64, _ method: String, _ pattern: String) -> Lie {
    Lie { answer in
      guard answer.route.method == method, answer.route.pattern == pattern else { return false }
      answer.announcedLength = length
      return true
    }
  }

  /// Never ends the body.
  package static func endless(_ method: String, _ pattern: String, of bytes: [UInt8]) -> Lie {
    Lie { answer in
      guard answer.route.method == method, answer.route.pattern == pattern else { return false }
      answer.endlessly = bytes
      answer.headers["content-length"] = nil
      return true
    }
  }

  // MARK: Events

  /// Changes the list of events that arrive together. Each event is its text with the empty line at the end.
  package static func events(_ change: @escaping @Sendable ([String]) -> [String]) -> Lie {
    Lie(act: .events(change))
  }
}

extension ServedAnswer {
  /// Whether the answer is to a request about a zone.
  fileprivate func isAbout(_ zone: ZoneID) -> Bool { path.contains("/\(zone.tree.text)/zones/\(zone.root.text)/") }

  /// - Returns: Whether the list changed.
  package mutating func changeZones(_ change: (inout [ZoneStatus]) -> Void) throws -> Bool {
    var list = try JSONDecoder().decode(ZoneList.self, from: Data(body))
    let before = list.zones
    change(&list.zones)
    body = Array(try JSONEncoder().encode(list))
    return list.zones != before
  }
}
