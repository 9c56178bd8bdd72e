extension Bundle {
  /// Cuts the bytes of a whole log into pages of whole commits, while they arrive (PROTOCOL 4.4). Pure logic without
  /// I/O.
  ///
  /// The list and the grant of a commit come before it, so a page may end after each commit.
  package struct PageCutter: Sendable {
    private static let headerBytes = 5
    /// The maximum length of a commit with its list and its grant.
    private static let groupBytes =
      3 * headerBytes + ItemType.commit.limit + max(ItemType.acl.limit, ItemType.aclEdit.limit) + ItemType.grant.limit

    private let room: Int
    private var pending: [UInt8] = []
    /// The length of the whole items in `pending`.
    private var itemBytes = 0
    /// Whether the last whole item is a commit, or there is none.
    private var endsWithCommit = true

    /// - Parameter room: A page ends with the first commit that reaches this length.
    package init(room: Int = Limits.pageBytes) {
      self.room = room
    }

    /// Adds the next bytes, of any length.
    ///
    /// - Returns: The pages that are complete with them.
    /// - Throws: `ZDCSecurityError` for an item of an unknown type or above its limit, and with `limitExceeded` for a
    ///   page that does not end in time.
    package mutating func add(_ slice: [UInt8]) throws(ZDCSecurityError) -> [[UInt8]] {
      pending += slice
      var pages: [[UInt8]] = []
      while let (type, count) = try nextItem() {
        itemBytes += count
        endsWithCommit = type == .commit
        if endsWithCommit, itemBytes >= room { pages.append(cut()) }
      }
      try require(pending.count <= room + Self.groupBytes, .limitExceeded)
      return pages
    }

    /// The bytes after the last page; nil if they do not end after a commit.
    package var rest: [UInt8]? { endsWithCommit && itemBytes == pending.count ? pending : nil }

    /// Returns the next item, or nil if not all of it has arrived.
    private func nextItem() throws(ZDCSecurityError) -> (type: ItemType, count: Int)? {
      var reader = ByteReader(pending[itemBytes...])
      guard reader.remaining > 0 else { return nil }
      guard let type = ItemType(rawValue: try reader.readUInt8()) else {
        throw ZDCSecurityError(.nonCanonicalEncoding)
      }
      guard reader.remaining >= Self.headerBytes - 1 else { return nil }
      let length = Int(try reader.readUInt32())
      try require(length <= type.limit, .limitExceeded)
      return length <= reader.remaining ? (type, Self.headerBytes + length) : nil
    }

    private mutating func cut() -> [UInt8] {
      let page = Array(pending.prefix(itemBytes))
      pending.removeFirst(itemBytes)
      itemBytes = 0
      return page
    }
  }
}
