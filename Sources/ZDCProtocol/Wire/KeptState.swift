/// What a server still has of one version of a node: the answer for one record of `POST …/kept` (PROTOCOL 4.4).
///
/// It is the server's word, for display. What a version is, and when it was replaced, follows from the verified log.
package struct KeptState: Sendable, Hashable {
  /// Whether the server has the record.
  package var hasRecord: Bool
  /// Whether it has the content that the record names. False for a record without content.
  package var hasContent: Bool
  /// When it stops keeping the record; 0 for a live one.
  package var untilMs: UInt64

  package init(hasRecord: Bool, hasContent: Bool, untilMs: UInt64) {
    (self.hasRecord, self.hasContent, self.untilMs) = (hasRecord, hasContent, untilMs)
  }

  package static let none = KeptState(hasRecord: false, hasContent: false, untilMs: 0)

  /// The bytes of one answer: `u8 state ‖ u64 untilMs`.
  package static let byteCount = 9

  package static func bytes(of states: [KeptState]) -> [UInt8] {
    var out = ByteWriter(capacity: byteCount * states.count)
    for state in states {
      out.append(UInt8(state.hasRecord ? state.hasContent ? 2 : 1 : 0))
      out.append(state.untilMs)
    }
    return out.bytes
  }

  /// Reads a whole answer.
  ///
  /// - Parameter count: The number of versions that were asked for.
  package static func all(_ bytes: [UInt8], count: Int) throws(ZDCSecurityError) -> [KeptState] {
    try require(bytes.count == byteCount * count, .nonCanonicalEncoding)
    var reader = ByteReader(bytes)
    var states: [KeptState] = []
    while reader.remaining > 0 {
      let state = try reader.readUInt8()
      let untilMs = try reader.readUInt64()
      try require(state <= 2 && (state > 0 || untilMs == 0), .nonCanonicalEncoding)
      states.append(KeptState(hasRecord: state > 0, hasContent: state == 2, untilMs: untilMs))
    }
    return states
  }
}
