/// Something that another device did, as `zdc watch` tells it.
package struct RemoteEvent: Sendable, Hashable, Encodable {
  package enum Kind: String, Sendable, Encodable {
    case new, modified, changed, moved, deleted, conflict
  }

  /// `new`; `modified` (the content); `changed` (only the record: its access, its keys); `moved`; `deleted`;
  /// `conflict`.
  package var event: Kind
  package var path: String
  /// Where it was, for `moved`; where the other version is now, for `conflict`.
  package var from: String?
  package var cloudID: String
  package var size: UInt64?
  /// Milliseconds since 1970 on this device's clock, when it was in the database here.
  package var at: UInt64

  package init(_ event: Kind, path: String, from: String? = nil, cloudID: String, size: UInt64? = nil, at: UInt64) {
    self.event = event
    self.path = path
    self.from = from
    self.cloudID = cloudID
    self.size = size
    self.at = at
  }

  /// One line for people.
  package var text: String {
    let shown = ShownName.text(path)
    switch event {
    case .moved: return "moved     \(from.map(ShownName.text) ?? "?") -> \(shown)"
    case .conflict: return "conflict  \(shown), kept as \(from.map(ShownName.text) ?? "?")"
    default:
      let word = event.rawValue
      return word + String(repeating: " ", count: 10 - word.count) + shown
    }
  }
}
