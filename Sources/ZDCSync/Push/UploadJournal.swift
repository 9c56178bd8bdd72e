internal import ZDCClientStore
internal import ZDCProtocol

/// Stores the state of one node's large uploads. All changes are durable when a call returns.
struct UploadJournal: Sendable {
  package let session: SyncSession
  package let tree: TreeID
  package let node: NodeID

  /// Returns the attempts of this node, and those of other nodes that no operation waits for any more.
  package func load() async throws -> (attempts: [UploadAttempt], forgotten: [BlobID]) {
    try await session.database.asyncRead { [session, tree, node] transaction in
      let store = UploadStore(transaction: transaction)
      return (
        try store.attempts(localUser: session.localUser, tree: tree, node: node),
        try store.forgotten(localUser: session.localUser)
      )
    }
  }

  /// Returns an attempt as it is recorded, or nil if it is not.
  package func attempt(_ blob: BlobID) async throws -> UploadAttempt? {
    try await session.database.asyncRead { [session, tree, node] transaction in
      try UploadStore(transaction: transaction)
        .attempts(localUser: session.localUser, tree: tree, node: node).first { $0.blobID == blob }
    }
  }

  /// Records a part before its first byte is sent.
  ///
  /// - Returns: False if a different part was recorded before.
  package func note(_ part: PartSealer.Part, of attempt: UploadAttempt) async throws -> Bool {
    let (index, hash) = (part.index, part.hash)
    return try await session.database.asyncReadWrite { [session, tree, node] transaction in
      let store = UploadStore(transaction: transaction)
      if index == 0 {
        try store.insert(attempt, localUser: session.localUser, tree: tree, node: node, atMs: session.now())
      }
      return try store.insert(part: index, hash: hash, of: attempt.blobID)
    }
  }

  package func forget(_ blobs: [BlobID]) async throws {
    try await session.database.asyncReadWrite { transaction in
      for blob in blobs { try UploadStore(transaction: transaction).remove(blob) }
    }
  }
}
