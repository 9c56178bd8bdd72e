package import ZDCProtocol

/// Parses Server-Sent Events incrementally, from slices of any size.
///
/// Comments and fields other than `event`, `data` and `id` are skipped, as the format requires. The size of lines and
/// events is limited, so a server that never ends one cannot exhaust memory.
package struct EventStreamParser {
  package struct Event: Hashable {
    package var name: String
    package var data: [UInt8]
    package var id: String?

    package init(name: String, data: [UInt8], id: String? = nil) {
      self.name = name
      self.data = data
      self.id = id
    }
  }

  private let limit: Int
  private var line: [UInt8] = []
  private var endedWithReturn = false
  private var name = ""
  private var data: [UInt8] = []
  private var hasData = false
  private var id: String?

  package init(limit: Int = Limits.jsonBytes) {
    self.limit = limit
  }

  /// Returns the events that these bytes complete.
  ///
  /// - Throws: `ZDCSecurityError.limitExceeded` for a line or an event above the limit.
  package mutating func push(_ bytes: some Collection<UInt8>) throws(ZDCSecurityError) -> [Event] {
    var events: [Event] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      // A carriage return ends a line, and a line feed directly after it belongs to the same line end.
      if endedWithReturn, rest.first == UInt8(ascii: "\n") { rest = rest.dropFirst() }
      endedWithReturn = false
      let end = rest.firstIndex { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
      let part = rest[..<(end ?? rest.endIndex)]
      try require(line.count + part.count + data.count <= limit, .limitExceeded)
      line.append(contentsOf: part)
      guard let end else { return events }
      endedWithReturn = rest[end] == UInt8(ascii: "\r")
      rest = rest[rest.index(after: end)...]
      if let event = endLine() { events.append(event) }
    }
    return events
  }

  private mutating func endLine() -> Event? {
    defer { line.removeAll(keepingCapacity: true) }
    guard !line.isEmpty else { return endEvent() }
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
    var value = line[colon...].dropFirst()
    if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
    switch String(decoding: line[..<colon], as: UTF8.self) {
    case "event": name = String(decoding: value, as: UTF8.self)
    case "data":
      if hasData { data.append(UInt8(ascii: "\n")) }
      data.append(contentsOf: value)
      hasData = true
    case "id": id = String(decoding: value, as: UTF8.self)
    default: break
    }
    return nil
  }

  /// Ends an event, on an empty line. An event without data is dropped.
  private mutating func endEvent() -> Event? {
    defer {
      name = ""
      data = []
      hasData = false
    }
    return hasData ? Event(name: name.isEmpty ? "message" : name, data: data, id: id) : nil
  }
}
