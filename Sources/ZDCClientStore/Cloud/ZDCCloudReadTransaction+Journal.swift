public import Foundation

// The outcomes of conflicts, for apps and their users.

extension ZDCCloudReadTransaction {
  /// Returns the tree's merge journal, newest first.
  ///
  /// ```swift
  /// for entry in cloud.mergeJournal(limit: 20) where entry.undoneAt == nil {
  ///   print(entry.date, entry.kind, entry.result.path?.fullPath() ?? "")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - nodeID: The ``ZDCNode/uuid`` of the only node to return entries for. Entries outlive their node.
  ///   - limit: The maximum number of entries.
  public final func mergeJournal(forNodeID nodeID: String? = nil, limit: Int = .max) -> [ZDCMergeJournalEntry] {
    transaction.poisoning { try transaction.journal.entries(of: journalOwner, nodeID: nodeID, limit: limit) } ?? []
  }

  /// Returns the entry; nil if there is none, or if it was evicted (``ZDCJournalLimits``).
  ///
  /// ```swift
  /// guard let known = cloud.mergeJournalEntry(id: entry.id) else { return }  // the journal is bounded
  /// print(known.kind)
  /// ```
  public final func mergeJournalEntry(id: UUID) -> ZDCMergeJournalEntry? {
    transaction.poisoning { try transaction.journal.entry(id, of: journalOwner) } ?? nil
  }

  final var journalOwner: JournalStore.Owner { JournalStore.Owner(localUser: localUser, appTreeID: treeID) }
}
