internal import ZDCProtocol
internal import ZDCServer

// Content
extension MemoryTransaction {
  func file(_ id: BlobID) -> BlobRow? { files(id).first }

  private func files(_ id: BlobID) -> [BlobRow] { (tables.files[id] ?? []).compactMap { tables.blobs[$0]?.row } }

  func contents(_ names: [ContentName], in tree: TreeID) -> [ContentName: BlobRow] {
    names.reduce(into: [:]) { $0[$1] = own($1, in: tree) ?? file($1.blob) }
  }

  /// Returns the node's current content, or small replaced content that is still retained.
  private func own(_ name: ContentName, in tree: TreeID) -> BlobRow? {
    if let key = tables.nodes[tree]?.all[name.node]?.row.blob, var live = tables.blobs[key]?.row, live.id == name.blob {
      live.zone = zoneKey(ofNode: name.node, tree: tree) ?? live.zone
      live.replacedMs = tables.zones[live.zone]?.row.closedMs
      return live
    }
    let small = (tables.smallContents[name] ?? []).compactMap { tables.blobs[$0]?.row }
    return small.first { $0.replacedMs != nil && treeID(of: $0.zone) == tree }
      ?? files(name.blob).first { $0.node == name.node && treeID(of: $0.zone) == tree }
  }

  func blobs(_ keys: [Int64]) -> [BlobRow] { keys.compactMap { tables.blobs[$0]?.row } }
  func inlineBytes(of blobs: [BlobRow]) -> [Int64: [UInt8]] {
    blobs.reduce(into: [:]) { $0[$1.key] = tables.blobs[$1.key]?.content }
  }

  func parts(of blob: BlobRow) -> [BlobStatus.Part] {
    (tables.blobs[blob.key]?.parts ?? [:]).sorted { $0.key < $1.key }
      .map { BlobStatus.Part(index: $0.key, hash: WireBytes($0.value)) }
  }

  func insertTicket(_ blob: BlobRow) throws -> Int64 {
    try check(.upload(blob.id))
    return insert(blob, content: nil)
  }

  func insert(_ blob: BlobRow, content: [UInt8]?) -> Int64 {
    var row = blob
    row.key = tables.newKey()
    tables.blobs[row.key] = MemoryTables.Blob(row: row, content: content)
    if content == nil {
      tables.files[row.id, default: []].append(row.key)
    } else {
      tables.smallContents[row.name, default: []].append(row.key)
    }
    return row.key
  }

  func updateTicket(_ blob: BlobRow) throws {
    try check(.upload(blob.id))
    update(blob)
  }

  func update(_ blob: BlobRow) {
    tables.blobs[blob.key]?.row = blob
    if blob.state == .attached { tables.blobs[blob.key]?.parts = [:] }
  }

  func insertPart(_ index: Int, hash: [UInt8], of blob: BlobRow, now: UInt64) throws {
    try check(.upload(blob.id))
    tables.blobs[blob.key]?.parts[index] = hash
  }

  func removeBlobs(_ blobs: [BlobRow]) throws {
    for blob in blobs where blob.state != .attached { try check(.upload(blob.id)) }
    remove(blobs)
  }

  func remove(_ blobs: [BlobRow]) {
    for blob in blobs {
      tables.blobs[blob.key] = nil
      if blob.isInline {
        tables.smallContents[blob.name]?.removeAll { $0 == blob.key }
      } else {
        tables.files[blob.id]?.removeAll { $0 == blob.key }
      }
    }
  }
}

// Garbage collection and counts
extension MemoryTransaction {
  private func zones(of owner: UserID) -> [MemoryTables.Zone] { tables.zones.values.filter { $0.owner == owner } }

  /// Returns live and retained blobs.
  private func contents(of zones: [MemoryTables.Zone]) -> [BlobRow] {
    let keys = Set(zones.map(\.row.key))
    return tables.blobs.values.map(\.row).filter { $0.state == .attached && keys.contains($0.zone) }
  }

  private func uploadBytes(of user: UserID) -> UInt64 {
    tables.blobs.values.map(\.row).filter { $0.state != .attached && $0.owner == user }
      .reduce(0) { $0 + $1.cipherLength }
  }

  func contentBytes(of user: UserID) -> UInt64 {
    contents(of: zones(of: user)).reduce(uploadBytes(of: user)) { $0 + $1.cipherLength }
  }

  func recordBytes(of user: UserID) -> UInt64 {
    tables.trees.values.filter { $0.owner == user }.reduce(0) { $0 + $1.usage.bytes }
  }

  func replacedContents(of user: UserID, bytes: UInt64) -> [BlobRow] {
    var free: UInt64 = 0
    return contents(of: zones(of: user)).filter { $0.replacedMs != nil }
      .sorted { ($0.replacedMs ?? 0, $0.key) < ($1.replacedMs ?? 0, $1.key) }
      .prefix { blob in
        defer { free += blob.cipherLength }
        return free < bytes
      }
  }

  func collect(replacedBefore: UInt64, abandonedBefore: UInt64, limit: Int) throws -> Collected {
    try check(.upkeep)
    let records = tables.records.filter { ($0.value.replacedMs ?? .max) < replacedBefore }.prefix(limit)
    for (key, record) in records { remove(record, key: key) }
    let doomed = tables.blobs.values.map(\.row).filter {
      ($0.replacedMs ?? .max) < replacedBefore || $0.state != .attached && $0.touchedMs < abandonedBefore
    }.prefix(limit)
    remove(Array(doomed))
    return Collected(Array(doomed), isMore: max(records.count, doomed.count) >= limit)
  }

  private func remove(_ record: MemoryTables.Record, key: Int64) {
    tables.records[key] = nil
    tables.recordKeys[record.name]?.removeAll { $0 == key }
    guard let tree = treeID(of: record.zone) else { return }
    tables.trees[tree]?.usage.records -= 1
    tables.trees[tree]?.usage.recordBytes -= UInt64(record.stored.bytes.count)
  }

  func usage(of user: UserID) -> UsageRow {
    let zones = zones(of: user)
    let blobs = contents(of: zones)
    let trees = tables.trees.values.filter { $0.owner == user }.map(\.usage)
    var usage = UsageRow()
    usage.liveNodes = trees.reduce(0) { $0 + UInt64(clamping: $1.nodes) }
    usage.commits = zones.reduce(0) { $0 + UInt64($1.log.count) }
    usage.records = trees.reduce(0) { $0 + $1.records }
    usage.recordBytes = trees.reduce(0) { $0 + $1.recordBytes }
    usage.logBytes = trees.reduce(0) { $0 + $1.logBytes }
    usage.closedZones = UInt64(zones.count { $0.row.isClosed })
    usage.blobs = UInt64(blobs.count)
    usage.contentBytes = blobs.reduce(0) { $0 + $1.cipherLength }
    usage.uploadBytes = uploadBytes(of: user)
    return usage
  }
}

extension BlobRow {
  fileprivate var name: ContentName { ContentName(node: node, blob: id) }
}
