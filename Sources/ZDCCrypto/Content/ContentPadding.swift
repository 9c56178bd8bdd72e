/// The zero padding that hides the content's exact length (PROTOCOL 3.8). The padding is inside the seal.
package enum ContentPadding: Sendable, Hashable {
  /// Padmé: at most 12 % more, and it reveals only O(log log n) bits of the length.
  case padme
  case none
  /// Pads to the next multiple; zero counts as one.
  case bucket(UInt64)

  /// Returns the padded length of header, sections and data of `length` bytes in total.
  package func paddedLength(of length: UInt64) -> UInt64 {
    switch self {
    case .none: length
    case .padme: Self.padme(length)
    case .bucket(let size): Self.roundUp(length, toMultipleOf: max(size, 1))
    }
  }

  /// Clears all but the top ⌊log2 ⌊log2 n⌋⌋ + 1 bits below the leading one, rounding up.
  private static func padme(_ length: UInt64) -> UInt64 {
    guard length >= 2 else { return length }
    let exponent = 63 - length.leadingZeroBitCount
    let kept = Int.bitWidth - exponent.leadingZeroBitCount
    return roundUp(length, toMultipleOf: 1 << UInt64(max(exponent - kept, 0)))
  }

  /// Rounds up and saturates, so that an absurd bucket size ends at the content limit instead of a trap.
  private static func roundUp(_ length: UInt64, toMultipleOf size: UInt64) -> UInt64 {
    let rest = length % size
    guard rest > 0 else { return length }
    let (padded, overflow) = length.addingReportingOverflow(size - rest)
    return overflow ? .max : padded
  }
}
