internal import ZDCServer

/// Changes of the numbers that a quota and an audit need, of one zone. Only the sum over all zones of a tree says what
/// the tree has: a split moves nodes and counts none.
struct ZoneSums {
  private(set) var usage = ZoneUsage()
  private(set) var contents: Int64 = 0
  private(set) var contentBytes: Int64 = 0
  private(set) var removedRecords: Int64 = 0
  private(set) var removedBytes: Int64 = 0

  mutating func add(_ other: ZoneUsage) { usage.add(other) }

  mutating func add(contents count: Int64, bytes: Int64) {
    contents += count
    contentBytes += bytes
  }

  mutating func remove(records: Int64, bytes: Int64) {
    removedRecords += records
    removedBytes += bytes
  }

  var records: Int64 { Int64(clamping: usage.records) - removedRecords }
  var recordBytes: Int64 { Int64(clamping: usage.recordBytes) - removedBytes }
}

extension PostgresTransaction {
  /// Writes the changes of the sums, in the order of the zones.
  func flush() throws {
    guard !sums.isEmpty else { return }
    let all = sums.sorted { $0.key < $1.key }
    sums = [:]
    let zones = PostgresValue.ints(all.map(\.key))
    if all.count > 1 {
      db.enqueue("SELECT zone FROM sums WHERE zone = ANY($1) ORDER BY zone FOR NO KEY UPDATE", zones)
    }
    db.enqueue(
      """
      UPDATE sums s SET nodes = s.nodes + w.nodes, records = s.records + w.records,
        record_bytes = s.record_bytes + w.record_bytes, log_bytes = s.log_bytes + w.log_bytes,
        contents = s.contents + w.contents, content_bytes = s.content_bytes + w.content_bytes
      FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[])
        AS w(zone, nodes, records, record_bytes, log_bytes, contents, content_bytes)
      WHERE s.zone = w.zone
      """, zones, .ints(all.map(\.value.usage.nodes)), .ints(all.map(\.value.records)),
      .ints(all.map(\.value.recordBytes)), .ints(all.map { Int64(clamping: $0.value.usage.logBytes) }),
      .ints(all.map(\.value.contents)), .ints(all.map(\.value.contentBytes)))
  }
}
