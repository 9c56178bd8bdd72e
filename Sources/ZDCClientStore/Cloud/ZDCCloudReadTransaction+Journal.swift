public import Foundation

// What became of conflicts, for apps and people.

extension ZDCCloudReadTransaction {
  /// The merge journal of the tree, newest first.
  ///
  /// - Parameters:
  ///   - nodeID: Of one node only, by its ``ZDCNode/uuid``; entries stay when their node goes.
  ///   - limit: At most so many.
  public final func mergeJournal(forNodeID nodeID: String? = nil, limit: Int = .max) -> [ZDCMergeJournalEntry] {
    transaction.poisoning { try transaction.journal.entries(of: journalOwner, nodeID: nodeID, limit: limit) } ?? []
  }

  /// The entry; nil if there is none, or not any more (``ZDCJournalLimits``).
  public final func mergeJournalEntry(id: UUID) -> ZDCMergeJournalEntry? {
    transaction.poisoning { try transaction.journal.entry(id, of: journalOwner) } ?? nil
  }

  final var journalOwner: JournalStore.Owner { JournalStore.Owner(localUser: localUser, appTreeID: treeID) }
}
