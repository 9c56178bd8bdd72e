import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// Lists of deletions, to be repeated in a copy of a backup.
struct Deletions {
  private struct Link {
    var hash: LinkHash
    var ms: UInt64
  }

  private struct Suspension {
    var ms: UInt64
    var isSuspended: Bool
  }

  let paths: [String]
  /// Sixteen bytes for each.
  private(set) var contents = Set<Deletion.Content>()
  /// The newest link after each link of a chain. The list also has a link that the store failed to keep, after which
  /// another one may have taken its place.
  private var newest: [LinkHash: Link] = [:]
  /// The operator's last word on each account.
  private var suspensions: [UserID: Suspension] = [:]

  /// - Throws: `StoreOpenError`.
  init(paths: [String]) async throws {
    self.paths = paths
    for path in paths {
      try await Self.refusingDamage(path) { try await DeletionFile.forEach(in: path) { try note($0) } }
    }
  }

  private mutating func note(_ deletion: Deletion) throws {
    switch deletion {
    case .content(let blob): contents.insert(blob)
    case .link(let request, _, _, let ms):
      let link = try IdentityLink(request.link.bytes)
      if newest[link.prev].map({ $0.ms <= ms }) ?? true { newest[link.prev] = Link(hash: link.hash, ms: ms) }
    case .suspension(let user, let ms, let isSuspended):
      guard suspensions[user].map({ $0.ms <= ms }) ?? true else { return }
      suspensions[user] = Suspension(ms: ms, isSuspended: isSuspended)
    case .account, .device: break
    }
  }

  /// Repeats everything but the removal of content.
  ///
  /// - Throws: `StoreOpenError`; the errors of the store.
  func repeatAll(in store: any MetadataStore) async throws -> RepeatedDeletions {
    let replay = DeletionReplay(in: store)
    var repeated = RepeatedDeletions()
    try await appendLinks(replay, &repeated)
    try await forEach { deletion in
      switch deletion {
      case .account(let user, let ms, let links):
        if try await replay.closeAccount(user, ms: ms, links: links) { repeated.closedAccounts += 1 }
      case .device(let device, let user, let ms):
        if try await replay.removeDevice(device, of: user, ms: ms) { repeated.removedDevices += 1 }
      case .content, .link, .suspension: break
      }
    }
    for (user, last) in suspensions {
      let isChanged = try await replay.setSuspension(of: user, ms: last.ms, isSuspended: last.isSuspended)
      if isChanged, last.isSuspended { repeated.suspendedAccounts += 1 }
    }
    return repeated
  }

  /// Links of one account may be in the lists of several servers: reads all lists until no further link continues a chain.
  private func appendLinks(_ replay: DeletionReplay, _ repeated: inout RepeatedDeletions) async throws {
    var isMore = true
    while isMore {
      var (appended, early) = (0, 0)
      try await forEach { deletion in
        guard case .link(let request, let user, let device, let ms) = deletion else { return }
        let link = try IdentityLink(request.link.bytes)
        guard newest[link.prev]?.hash == link.hash else { return }
        switch try await replay.append(request, to: user, by: device, ms: ms) {
        case .done: appended += 1
        case .early: early += 1
        case .needless: break
        }
      }
      repeated.repeatedLinks += appended
      repeated.skippedLinks = early
      isMore = appended > 0 && early > 0
    }
  }

  private func forEach(_ body: (Deletion) async throws -> Void) async throws {
    for path in paths { try await Self.refusingDamage(path) { try await DeletionFile.forEach(in: path, body) } }
  }

  /// A link that is none, or that its owner has not signed, is damage of the list.
  private static func refusingDamage(_ path: String, _ body: () async throws -> Void) async throws {
    do { try await body() } catch is ZDCSecurityError { throw StoreOpenError(.damagedDeletions, path: path) }
  }
}

/// The later changes that a restore has repeated in a backup.
struct RepeatedDeletions: Encodable {
  var closedAccounts = 0
  /// Links that were appended to chains: new words, keys and handles.
  var repeatedLinks = 0
  /// Links that no chain of the copy leads to, because a list is missing.
  var skippedLinks = 0
  var removedDevices = 0
  var suspendedAccounts = 0

  var descriptions: [String] {
    [
      (closedAccounts, "accounts closed again"), (repeatedLinks, "changes of keys, words and handles repeated"),
      (removedDevices, "devices removed again"), (suspendedAccounts, "accounts suspended again"),
      (skippedLinks, "changes of keys, words and handles not repeated, because a list with earlier ones is missing"),
    ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
  }
}
