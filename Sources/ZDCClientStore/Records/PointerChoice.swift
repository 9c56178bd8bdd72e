internal import ZDCProtocol

/// The pointer that precedes all others to a zone.
struct PointerChoice {
  var pointer: Int64
  /// The zone that the pointer is in.
  var place: Int64
  var isShown: Bool
  /// The last pointer of a circle has the largest rank. The pointer that a split has left and the user's own are smaller than
  /// those of other members.
  var rank: String

  static let query = """
    SELECT z.id, n.id, n.zone, z.mount IS NOT NULL, hex(p.treeID) || hex(p.zoneRoot) || hex(n.nodeID),
      z.owner IS NOT NULL AND p.owner IS NULL, z.treeID = p.treeID, n.nodeID, z.genesis
    FROM zdc_zone z JOIN zdc_node n ON n.id = coalesce(z.mount, z.circularMount) JOIN zdc_zone p ON p.id = n.zone
    """

  /// Returns the zones whose pointer is the last one of a circle. The order in which a device has read the pointers does not
  /// matter.
  ///
  /// - Parameter choices: By the number of the zone that is pointed to.
  static func leaves(of choices: [Int64: PointerChoice]) -> Set<Int64> {
    var (leaves, passed): (Set<Int64>, Set<Int64>) = ([], [])
    for start in choices.keys {
      var (path, zone): ([Int64], Int64) = ([], start)
      while let choice = choices[zone], passed.insert(zone).inserted {
        path.append(zone)
        zone = choice.place
      }
      guard let first = path.firstIndex(of: zone) else { continue }
      let circle = path[first...].map { (zone: $0, rank: choices[$0]?.rank ?? "") }
      if let last = circle.max(by: { $0.rank < $1.rank }) { leaves.insert(last.zone) }
    }
    return leaves
  }
}

extension PointerChoice {
  init(_ row: RawRow) throws {
    let rank: String = row[4]
    let isOfUserOrSplit = try row[5] as Int != 0 || Self.isOfSplit(row)
    self.init(
      pointer: row[1], place: row[2], isShown: row[3] as Int != 0, rank: (isOfUserOrSplit ? "0" : "1") + rank)
  }

  private static func isOfSplit(_ row: RawRow) throws -> Bool {
    guard row[6] as Int != 0, let genesis = try row.optional32(8, CommitHashRole.self) else { return false }
    return try NodeID(row, 7) == .mount(ofZoneWith: genesis)
  }
}
