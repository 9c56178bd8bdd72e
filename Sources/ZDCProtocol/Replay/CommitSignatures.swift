/// Commits whose signatures were found valid before replay, each with the key that verified it.
///
/// This is a cache and not a verdict. Replay looks up the key of each commit itself, and verifies the signature unless
/// this has the same commit with the same key. Order and codes of its errors are therefore the same without it.
package struct CommitSignatures: Sendable {
  /// The number of commits from which a check in advance pays off.
  package static let minimum = 32
  /// More tasks gain nothing, because replay is slower than eight cores are.
  private static let tasks = 8
  /// The number of commits between two suspensions of a task. It takes about a millisecond to verify them.
  private static let chunk = 16

  private let keys: [CommitHash: [UInt8]]

  package init() { keys = [:] }

  init(keys: [CommitHash: [UInt8]]) { self.keys = keys }

  /// Verifies the signatures of a page's commits on several cores, outside of the transaction that replays them.
  ///
  /// - Returns: The valid ones. It is empty for a small page, and incomplete if the task was cancelled.
  package static func check(
    _ commits: [ZoneCommit], _ identities: some IdentityDirectory & Sendable
  ) async -> CommitSignatures {
    guard commits.count >= minimum else { return CommitSignatures() }
    return await withTaskGroup(of: [CommitHash: [UInt8]].self, returning: CommitSignatures.self) { group in
      for task in 0..<Self.tasks {
        group.addTask { await Self.validKeys(of: commits, task: task, identities) }
      }
      var keys: [CommitHash: [UInt8]] = [:]
      for await found in group { keys.merge(found) { known, _ in known } }
      return CommitSignatures(keys: keys)
    }
  }

  /// Returns whether this key is known to verify the commit's signature.
  package func contains(_ commit: ZoneCommit, by key: [UInt8]) -> Bool { keys[commit.hash] == key }

  /// Verifies the chunks of one task.
  private static func validKeys(
    of commits: [ZoneCommit], task: Int, _ identities: some IdentityDirectory & Sendable
  ) async -> [CommitHash: [UInt8]] {
    var keys: [CommitHash: [UInt8]] = [:]
    for start in stride(from: task * chunk, to: commits.count, by: tasks * chunk) where !Task.isCancelled {
      for commit in commits[start..<min(start + chunk, commits.count)] {
        keys[commit.hash] = commit.validKey(identities)
      }
      await Task.yield()
    }
    return keys
  }
}

extension ZoneCommit {
  /// Returns the writer's key if it verifies the signature. Replay reports the errors of all others.
  fileprivate func validKey(_ identities: some IdentityDirectory) -> [UInt8]? {
    guard let key = try? identities.signKey(user: fields.writer, generation: fields.writerGen) else { return nil }
    return hasSignature(by: key) ? key : nil
  }

  func hasSignature(by key: [UInt8]) -> Bool {
    Signatures.isValid(signature, by: key, label: "commit", message: signedBytes)
  }
}
