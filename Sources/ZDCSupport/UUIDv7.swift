internal import Synchronization

/// Generates UUIDs for this device's rows that sort in creation order (RFC 9562, version 7).
///
/// Rows created and deleted together are adjacent in the UUID index. A commit of a thousand operations therefore
/// touches few index pages, however long the queue is.
package enum UUIDv7 {
  /// Milliseconds in the upper bits, and a twelve-bit counter within each millisecond.
  private static let last = Atomic<UInt64>(0)

  /// Returns a UUID that sorts after all earlier ones.
  ///
  /// - Parameter time: The current time in milliseconds. A wrong clock only affects the order between runs of the app.
  package static func make(atMs time: UInt64) -> String {
    var random = SystemRandomNumberGenerator()
    let tick = next(atMs: time)
    let high = (tick >> 12) << 16 | 0x7000 | tick & 0x0fff
    return text(high, random.next() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000)
  }

  private static func next(atMs time: UInt64) -> UInt64 {
    var known = last.load(ordering: .relaxed)
    while true {
      let tick = max(time << 12, known &+ 1)
      let (done, current) = last.weakCompareExchange(expected: known, desired: tick, ordering: .relaxed)
      if done { return tick }
      known = current
    }
  }

  private static func text(_ high: UInt64, _ low: UInt64) -> String {
    String(unsafeUninitializedCapacity: 36) { text in
      var end = 0
      for index in 0..<32 {
        if index == 8 || index == 12 || index == 16 || index == 20 {
          text[end] = UInt8(ascii: "-")
          end += 1
        }
        let digit = UInt8(truncatingIfNeeded: (index < 16 ? high : low) >> UInt64(60 - index % 16 * 4)) & 15
        text[end] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "A") + digit - 10
        end += 1
      }
      return end
    }
  }
}
