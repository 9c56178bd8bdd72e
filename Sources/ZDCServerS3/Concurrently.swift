/// Calls `body` for all items, for at most `limit` of them at the same time, and returns the results in order.
func concurrently<Item: Sendable, Result: Sendable>(
  _ items: [Item], limit: Int, _ body: @escaping @Sendable (Item) async throws -> Result
) async throws -> [Result] {
  try await withThrowingTaskGroup(of: (Int, Result).self) { group in
    var results = [Result?](repeating: nil, count: items.count)
    for (index, item) in items.enumerated() {
      if index >= limit, let (done, result) = try await group.next() { results[done] = result }
      group.addTask { (index, try await body(item)) }
    }
    for try await (done, result) in group { results[done] = result }
    return results.compactMap { $0 }
  }
}

/// Ranges of an object, joined so that few requests read them.
struct ByteRuns: Sendable {
  private(set) var ranges: [Range<UInt64>] = []

  struct NotThere: Error {}

  /// - Parameter gap: ranges with at most this many bytes between them are joined.
  init(joining all: [Range<UInt64>], gap: UInt64) {
    for range in all.sorted(by: { $0.lowerBound < $1.lowerBound }) where !range.isEmpty {
      if let last = ranges.last, range.lowerBound <= last.upperBound + gap {
        ranges[ranges.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
      } else {
        ranges.append(range)
      }
    }
  }

  /// Returns bytes out of `pieces`, which has the bytes of each range.
  func bytes(at offset: UInt64, count: Int, in pieces: [[UInt8]]) throws -> [UInt8] {
    guard count > 0 else { return [] }
    let wanted = offset..<offset + UInt64(count)
    guard let index = ranges.firstIndex(where: { $0.lowerBound <= offset && wanted.upperBound <= $0.upperBound }),
      pieces[index].count == ranges[index].count
    else { throw NotThere() }
    let start = Int(offset - ranges[index].lowerBound)
    return Array(pieces[index][start..<start + count])
  }
}
