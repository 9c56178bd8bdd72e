/// What happens when a change that is still queued here meets one that somebody else has committed: the table "Outcomes
/// of concurrent
/// changes" of PROTOCOL 3.7 as a function. Pure.
package enum ConflictRules {
  /// What this device has queued.
  package enum Local: Sendable, Hashable, CaseIterable {
    case create
    case editData
    case rename
    case move
    case delete
  }

  /// What the zone's log says.
  package enum Remote: Sendable, Hashable, CaseIterable {
    case create
    case editData
    case rename
    case move
    /// A new key for the node, its content unchanged.
    case rotate
    case delete
    /// A remote move that puts a node into the sub-tree which is deleted here.
    case moveInto
  }

  /// How the nodes that the two changes are about stand to each other.
  package enum Relation: Sendable, Hashable, CaseIterable {
    case sameNode
    /// The local change is about a node below the remote one's.
    case localBelowRemote
    /// The remote change is about a node below the local one's.
    case remoteBelowLocal
    /// Other nodes whose names would clash in one parent.
    case sameName
    /// The local move's destination lies, after the remote change, below the moved node or was deleted.
    case destinationLost
  }

  package enum Outcome: Sendable, Hashable, CaseIterable {
    /// Nothing to decide: both hold.
    case bothHold
    /// The local node becomes "Name 2": `.path` conflict first, then Moved.
    case renameLocalNode
    /// The upload is held, and the app merges or skips: `.data` conflict.
    case askAboutData
    /// The queued operation stays; its record is made from the new state.
    case rebase
    /// The queued operation is dropped and Moved is announced.
    case dropLocalChange
    /// The queued move is dropped; the node goes back to where the cloud has it.
    case returnToCloudPlace
    /// `didDiscoverDeletedDirtyNode`; what is kept gets fresh node ids, and its operations wait for the app.
    case askAboutDirtyDelete
    /// The delete stays queued and goes by node id, its descendants counted again.
    case deleteAnyway
    /// The delete's commit first moves the arrival to the deleted node's parent.
    case rescueThenDelete
    /// What was asked for is already so.
    case done
  }

  package static func outcome(_ local: Local, against remote: Remote, _ relation: Relation) -> Outcome {
    switch relation {
    case .sameNode: sameNode(local, remote)
    case .localBelowRemote: remote == .delete ? (local == .delete ? .done : .askAboutDirtyDelete) : .bothHold
    case .remoteBelowLocal: remoteBelowLocal(local, remote)
    case .sameName: sameName(local, remote)
    case .destinationLost: local == .move ? .returnToCloudPlace : sameNode(local, remote)
    }
  }

  private static func sameNode(_ local: Local, _ remote: Remote) -> Outcome {
    switch (local, remote) {
    case (.delete, .delete): .done
    case (.delete, .moveInto): .rescueThenDelete
    case (.delete, _): .deleteAnyway
    case (_, .delete): .askAboutDirtyDelete
    case (.editData, .editData): .askAboutData
    case (.rename, .rename), (.rename, .move), (.move, .rename), (.move, .move): .dropLocalChange
    case (.rename, .moveInto), (.move, .moveInto): .dropLocalChange
    // The node's own creation, seen before its answer was: never a second node, never a conflict with oneself.
    case (.create, .create): .done
    case (.create, _), (.editData, _), (.rename, _), (.move, _): .rebase
    }
  }

  private static func remoteBelowLocal(_ local: Local, _ remote: Remote) -> Outcome {
    guard local == .delete else { return .bothHold }
    return remote == .moveInto ? .rescueThenDelete : .deleteAnyway
  }

  /// A name is claimed by creating, renaming and moving; the committed claim holds.
  private static func sameName(_ local: Local, _ remote: Remote) -> Outcome {
    let localClaims: Set<Local> = [.create, .rename, .move]
    let remoteClaims: Set<Remote> = [.create, .rename, .move, .moveInto]
    return localClaims.contains(local) && remoteClaims.contains(remote) ? .renameLocalNode : .bothHold
  }
}
