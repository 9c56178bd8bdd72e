internal import ZDCProtocol
package import ZDCServer

/// One closure's view of the tables.
final class MemoryTransaction: MetadataTransaction {
  var tables: MemoryTables
  private(set) var effects: [@Sendable () -> Void] = []

  private let subjects: Set<WriteSubject>

  init(_ tables: MemoryTables, changing subjects: Set<WriteSubject>) {
    self.tables = tables
    self.subjects = subjects
  }

  /// - Throws: ``UnnamedSubject`` if the write did not name it.
  func check(_ subject: WriteSubject) throws {
    guard subjects.contains(subject) else { throw UnnamedSubject(subject: subject) }
  }

  func afterCommit(_ effect: @escaping @Sendable () -> Void) { effects.append(effect) }

  func probeFreeSpace() throws { try check(.upkeep) }
  func releaseProbe() throws { try check(.upkeep) }
}

/// A change of something that the write did not name.
package struct UnnamedSubject: Error {
  package var subject: WriteSubject
}

/// A row has the key of another one: a unique index refuses it in the other stores.
struct KeyTaken: Error {}

// Accounts
extension MemoryTransaction {
  func user(_ id: UserID) -> UserRow? { tables.users[id] }
  func users(_ ids: [UserID]) -> [UserID: UserRow] { ids.reduce(into: [:]) { $0[$1] = user($1) } }
  func user(lookup: LookupID) -> UserRow? { tables.users.values.first { $0.lookup == lookup } }
  func users(after id: UserID?, limit: Int) -> [UserRow] {
    let later = tables.users.values.filter { user in id.map { $0 < user.id } ?? true }
    return Array(later.sorted { $0.id < $1.id }.prefix(limit))
  }

  func links(of user: UserID) -> [[UInt8]] { tables.links[user] ?? [] }

  func links(after positions: [ChainPosition], limit: Int) -> [[UInt8]] {
    var all: [[UInt8]] = []
    var bytes = 0
    for position in positions {
      let links = links(of: position.user).dropFirst(Int(position.count))
      bytes += links.reduce(0) { $0 + $1.count }
      if !all.isEmpty, bytes > limit { break }
      all += links
    }
    return all
  }

  func link(_ seq: UInt32, of user: UserID) -> [UInt8]? {
    let links = links(of: user)
    return Int(seq) < links.count ? links[Int(seq)] : nil
  }

  func chainBytes(of user: UserID) -> Int { links(of: user).reduce(0) { $0 + $1.count } }
  func signKey(user: UserID, generation: UInt32) -> [UInt8]? { tables.signKeys[user]?[generation] }
  func keyring(of user: UserID) -> [UInt8]? { tables.keyrings[user] }
  func isInviteUsed(_ codeHash: [UInt8]) -> Bool { tables.invites.contains(codeHash) }

  func insertUser(_ user: UserRow) throws {
    try check(.account(user.id))
    guard tables.users[user.id] == nil, self.user(lookup: user.lookup) == nil else { throw KeyTaken() }
    tables.users[user.id] = user
  }

  func updateUser(_ user: UserRow) throws {
    try check(.account(user.id))
    guard tables.users[user.id] != nil else { return }
    tables.users[user.id] = user
  }

  func appendLink(_ link: IdentityLink, to user: UserID) throws {
    try check(.account(user))
    tables.links[user, default: []].append(link.bytes)
    // A generation keeps the key that it was introduced with.
    tables.signKeys[user, default: [:]].merge([link.signGen: link.signPub]) { known, _ in known }
  }

  func setKeyring(_ bytes: [UInt8], of user: UserID) throws {
    try check(.account(user))
    tables.keyrings[user] = bytes
  }

  func useInvite(_ codeHash: [UInt8], user: UserID, now: UInt64) throws {
    try check(.account(user))
    guard tables.invites.insert(codeHash).inserted else { throw KeyTaken() }
  }

  func handles(beginning: String, limit: Int) -> [HandleList.Entry] {
    let found = tables.handles.filter { $0.value.releasedMs == nil && $0.key.text.hasPrefix(beginning) }
    return found.map { HandleList.Entry(handle: $0.key, user: $0.value.user) }.sorted { $0.handle < $1.handle }
      .prefix(limit).map(\.self)
  }

  func handles(of user: UserID) -> [HandleRow] {
    let own = tables.handles.filter { $0.value.user == user }
    return own.map { HandleRow(handle: $0.key, releasedMs: $0.value.releasedMs) }.sorted { $0.handle < $1.handle }
  }

  func setHandle(_ handle: Handle?, of user: UserID, now: UInt64, freeBefore: UInt64) throws -> Bool {
    try check(.account(user))
    if let known = handle.flatMap({ tables.handles[$0] }), known.user != user, known.releasedMs ?? .max >= freeBefore {
      return false
    }
    tables.handles = tables.handles.filter { $0.value.user != user || $0.value.releasedMs == nil }
    for (own, value) in tables.handles where value.user == user { tables.handles[own]?.releasedMs = now }
    if let handle { tables.handles[handle] = (user, nil) }
    return true
  }
}

// Devices and sessions
extension MemoryTransaction {
  func device(_ id: DeviceID, of user: UserID) -> DeviceRow? { tables.devices[user]?[id] }

  func devices(of user: UserID) -> [DeviceRow] {
    (tables.devices[user] ?? [:]).values.sorted { ($0.createdMs, $0.id) < ($1.createdMs, $1.id) }
  }

  func session(tokenHash: [UInt8]) -> SessionRow? { tables.sessions[tokenHash] }

  func sessions(of user: UserID) -> [SessionRow] {
    tables.sessions.values.filter { $0.user == user }.sorted { $0.createdMs < $1.createdMs }
  }

  func putDevice(_ device: DeviceRow, of user: UserID) throws {
    try check(.account(user))
    tables.devices[user, default: [:]][device.id] = device
  }

  func removeDevice(_ id: DeviceID, of user: UserID) throws {
    try check(.account(user))
    tables.devices[user]?[id] = nil
    for session in sessions(of: user) where session.device == id { try removeSession(tokenHash: session.tokenHash) }
  }

  func trimDevices(of user: UserID, keeping count: Int) throws -> [DeviceID] {
    let devices = devices(of: user)
    guard devices.count > count else { return [] }
    let lastLogins = Dictionary(sessions(of: user).map { ($0.device, $0.createdMs) }, uniquingKeysWith: max)
    func order(_ device: DeviceRow) -> (UInt64, UInt64, DeviceID) {
      (lastLogins[device.id] ?? 0, device.createdMs, device.id)
    }
    let gone = devices.sorted { order($0) < order($1) }.prefix(devices.count - count).map(\.id)
    for device in gone { try removeDevice(device, of: user) }
    return gone
  }

  func insertSession(_ session: SessionRow) throws {
    try check(.account(session.user))
    tables.sessions[session.tokenHash] = session
  }

  func removeSession(tokenHash: [UInt8]) throws {
    guard let session = tables.sessions[tokenHash] else { return }
    try check(.account(session.user))
    tables.sessions[tokenHash] = nil
  }

  func removeExpiredSessions(now: UInt64) throws {
    try check(.upkeep)
    tables.sessions = tables.sessions.filter { $0.value.expiresMs > now }
  }

  func trimSessions(of user: UserID, device: DeviceID, keeping count: Int) throws -> [[UInt8]] {
    let newestFirst = sessions(of: user).filter { $0.device == device }
      .sorted { ($0.expiresMs, $0.createdMs) > ($1.expiresMs, $1.createdMs) }
    let ended = newestFirst.dropFirst(count).map(\.tokenHash)
    for hash in ended { try removeSession(tokenHash: hash) }
    return ended
  }
}
