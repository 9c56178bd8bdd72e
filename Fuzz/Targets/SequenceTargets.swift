internal import ZDCProtocol
internal import ZDCServer
internal import ZeroDarkCloud

extension FuzzTarget {
  /// Sequences of objects: bundles, chains, requests, event streams.
  static let sequences: [FuzzTarget] = [
    FuzzTarget("bundle", longest: 64 << 10) { bytes in
      var reader = Bundle.Reader(bytes)
      var items = 0
      while let item = try accepted({ try reader.next() }) ?? nil {
        items += 1
        if case .content(_, let content) = item {
          try FuzzFinding.require(content.count <= Limits.inlineContentBytes, "each content item keeps its limit")
        }
      }
      try FuzzFinding.require(items * 5 <= bytes.count, "each item has its own header")
    },
    FuzzTarget("identity-chain", longest: 64 << 10) { bytes in
      var reader = Bundle.Reader(bytes)
      guard let items = try accepted({ try reader.all() }) else { return }
      var links: [IdentityLink] = []
      for case .link(let link) in items { links.append(link) }
      guard let identity = try accepted({ try IdentityReplay.verify(links) })
      else { return }
      try FuzzFinding.require(Int(identity.seq) == links.count - 1, "a verified chain has no gap")
    },
    FuzzTarget("commit-request", longest: 64 << 10) { bytes in
      do {
        _ = try CommitRequest(bytes)
      } catch is ServerError {} catch is ZDCSecurityError {}
    },
    FuzzTarget("zone-pages", longest: 64 << 10) { bytes in
      if let positions = try accepted({ try ZonePosition.all(bytes) }) {
        try FuzzFinding.require(ZonePosition.bytes(of: positions) == bytes, "positions have one encoding")
      }
      guard let pages = try accepted({ try ZonePage.all(bytes) }) else { return }
      var out = ByteWriter()
      for page in pages { page.append(to: &out) }
      try FuzzFinding.require(out.bytes == bytes, "pages of zones have one encoding")
    },
    FuzzTarget("event-stream", longest: 64 << 10) { bytes in try checkEventStream(bytes) },
    FuzzTarget("whole-log", longest: 64 << 10) { bytes in try checkPages(bytes) },
  ]

  /// Checks that the pages of a log are the same however its bytes are sliced, and that nothing of it is lost.
  private static func checkPages(_ bytes: [UInt8]) throws {
    var whole = Bundle.PageCutter(room: 64)
    var sliced = Bundle.PageCutter(room: 64)
    guard let pages = try accepted({ try whole.add(bytes) }) else { return }
    var others: [[UInt8]] = []
    for byte in bytes { others += try sliced.add([byte]) }
    try FuzzFinding.require(
      pages == others && whole.rest == sliced.rest, "pages do not depend on how the bytes were cut")
    guard let rest = whole.rest else { return }
    try FuzzFinding.require(pages.flatMap { $0 } + rest == bytes, "pages and the rest are all bytes")
  }

  /// Checks that the events are the same however the bytes are sliced.
  private static func checkEventStream(_ bytes: [UInt8]) throws {
    var whole = EventStreamParser()
    var sliced = EventStreamParser()
    guard let events = try accepted({ try whole.push(bytes) }) else { return }
    var others: [EventStreamParser.Event] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      // The input itself determines where it is cut.
      let length = 1 + Int(rest[rest.startIndex] & 7)
      others += try sliced.push(rest.prefix(length))
      rest = rest.dropFirst(length)
    }
    try FuzzFinding.require(events == others, "events do not depend on how the bytes were cut")
  }
}
