/// A change made by another device, as `zdc watch` reports it.
package struct RemoteEvent: Sendable, Hashable, Encodable {
  package enum Kind: String, Sendable, Encodable {
    case new, modified, changed, moved, deleted, conflict
  }

  /// The kind of change: `new`; `modified` (the content); `changed` (only the record: its access, its keys); `moved`;
  /// `deleted`; `conflict`.
  package var event: Kind
  package var path: String
  /// The previous path, for `moved`; the path of the other version, for `conflict`.
  package var from: String?
  package var cloudID: String
  package var size: UInt64?
  /// When the change was stored in the local database, in milliseconds since 1970 on this device's clock.
  package var at: UInt64

  package init(_ event: Kind, path: String, from: String? = nil, cloudID: String, size: UInt64? = nil, at: UInt64) {
    self.event = event
    self.path = path
    self.from = from
    self.cloudID = cloudID
    self.size = size
    self.at = at
  }

  /// The event as one human-readable line.
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
