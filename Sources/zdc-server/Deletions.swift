import ZDCServer
import ZDCServerSQLite

/// Lists of deletions, to be repeated in a restored server.
struct Deletions {
  private var paths: [String] = []
  /// Sixteen bytes for each.
  private(set) var contents = Set<Deletion.Content>()

  init() {}

  /// - Throws: `StoreOpenError`.
  init(paths: [String]) async throws {
    self.paths = paths
    for path in paths {
      try await DeletionFile.forEach(in: path) { if case .content(let blob) = $0 { contents.insert(blob) } }
    }
  }

  /// - Returns: the number of accounts that were open in the store.
  func closeAccounts(in store: any MetadataStore) async throws -> Int {
    var closed = 0
    let replay = DeletionReplay(in: store)
    for path in paths {
      try await DeletionFile.forEach(in: path) { deletion in
        guard case .account(let user, let ms, let links) = deletion else { return }
        if try await replay.closeAccount(user, ms: ms, links: links) { closed += 1 }
      }
    }
    return closed
  }
}
