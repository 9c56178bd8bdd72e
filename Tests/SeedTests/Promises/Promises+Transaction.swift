// Reference parts 3.5 and 3.6: the cloud transaction.
extension Promise {
  static let transaction: [Promise] = [
    // Looking up
    Promise(
      id: "seed-3.5-nodePath", wording: "the node at a path",
      state: .tested(
        by: "NodeManagerTests/lookups_findTheSameNodeEveryWay",
        "CloudCreateTests/createdNode_existsImmediately_withItsOperationsQueued")),
    Promise(
      id: "seed-3.5-parentNode", wording: "the parent of a node",
      state: .tested(by: "DelegateTests/newNode_isInTheDatabase_withItsParent")),
    Promise(
      id: "seed-3.5-trunkNode", wording: "the root of a trunk",
      state: .tested(by: "NodeManagerTests/lookups_findTheSameNodeEveryWay")),
    Promise(
      id: "seed-3.5-conflictFreePath", wording: "the next free name for a path",
      state: .tested(by: "CloudCreateTests/conflictFreePath_countsOn")),
    // Changing
    Promise(
      id: "seed-3.5-createNode", wording: "creates a node and queues it; refuses a missing parent and a taken name",
      state: .tested(
        by: "CloudCreateTests/createdNode_existsImmediately_withItsOperationsQueued",
        "CloudCreateTests/missingParent_saysAtWhichDepth_andNoName",
        "CloudCreateTests/takenName_isAConflict_andNothingIsDone")),
    Promise(
      id: "seed-3.5-modifyNode", wording: "stores a changed node: another place is a move, else its record",
      state: .tested(
        by: "CloudMoveTests/renamedNode_keepsItsIdentity_andIsQueuedAsAMove",
        "CloudMoveTests/burnDateAlone_isAChangeOfTheRecord_thatAMoveTakesAlong")),
    Promise(
      id: "seed-3.5-queueDataUpload", wording: "queues an upload with its changeset, based on what the app has",
      state: .tested(
        by: "CloudUploadTests/upload_isBasedOnTheKnownVersion_andKeepsItsChangeset",
        "CloudUploadTests/unknownNodesAndTrunks_haveNoUpload")),
    Promise(
      id: "seed-3.5-delete", wording: "deletes a branch: here at once, in the cloud in its turn",
      state: .tested(
        by: "CloudDeleteTests/pushedBranch_isOneDelete_andItsQueuedChangesGo",
        "CloudDeleteTests/trunksUnknownNodesAndSparingOptions_areRefused")),
    Promise(
      id: "seed-3.5-sendMessage", wording: "sends a message to several, after what it depends on",
      state: .tested(
        by: "MessageTests/eachRecipientGetsTheMessageOnce_andEachCallbackComesOnce",
        "MessageTests/aMessageWaitsForItsDependencies")),
    Promise(
      id: "seed-3.5-graftInvite", wording: "everything that an invited user needs to find a node",
      state: .tested(by: "GraftTests/anInvite_isThereOnceTheRecipientIsListed")),
    Promise(
      id: "seed-3.5-graftNode", wording: "grafts another user's node at a local path",
      state: .tested(
        by: "GraftTests/aGraft_showsTheBranchAtItsPath_announcedFromTheTop", "GraftTests/refusals_doNothing")),
    Promise(
      id: "seed-3.5-recursiveAddShareItem", wording: "gives access to a branch and returns what was queued for it",
      state: .tested(by: "BranchTests/aBranchIsShared", "ListChangeTests/misuse_isATypedError")),
    // Links
    Promise(
      id: "seed-3.5-linkNodeID", wording: "links a node with an object one to one, which may be stored later",
      state: .tested(by: "CloudLinkTests/link_isFoundFromBothSides", "CloudLinkTests/linksAreOneToOne")),
    Promise(
      id: "seed-3.5-linkedNode", wording: "the node, or its id, of an object",
      state: .tested(by: "CloudLinkTests/link_isFoundFromBothSides")),
    Promise(
      id: "seed-3.5-linkedCollectionAndKey", wording: "collection and key of a node's object",
      state: .tested(by: "CloudLinkTests/link_isFoundFromBothSides")),
    Promise(
      id: "seed-3.5-linkedObject", wording: "a node's object, of the type that is registered",
      state: .tested(by: "CloudLinkTests/link_isFoundFromBothSides")),
    Promise(
      id: "seed-3.5-tags", wording: "tags are stored, read, listed and removed",
      state: .tested(
        by: "CloudLinkTests/tagsKeepTheirType", "CloudLinkTests/tags_areReplaced_removed_andGoWithTheirNode")),
    // Downloads and conflicts
    Promise(
      id: "seed-3.5-downloadStatus", wording: "marks of what is to be downloaded outlast the process",
      state: .tested(
        by: "LinkPromiseTests/linksTagsAndMarks_stayWithTheirNode",
        "MarkedDownloadTests/remainingMarks_areDownloadedAtTheNextLaunch")),
    Promise(
      id: "seed-3.5-needsDownload", wording: "marks add up, any of them counts, another version keeps them",
      state: .tested(by: "CloudLinkTests/marks_addUp_anyOfThemCounts_andANewerVersionKeepsThem")),
    Promise(
      id: "seed-3.5-pendingChangesets", wording: "changesets of queued uploads, oldest first",
      state: .tested(by: "CloudUploadTests/twoEdits_areTwoOperations_theSecondAfterTheFirst")),
    Promise(
      id: "seed-3.5-didMergeData", wording: "a merged version rebases what is queued, and ends the hold",
      state: .tested(
        by: "CloudUploadTests/mergedVersion_rebasesAllQueuedUploads_andEndsTheHold",
        "ConflictTests/merged_bothEditsAreThere")),
    Promise(
      id: "seed-3.5-skipDataUploads", wording: "queued uploads are dropped: the cloud's version holds",
      state: .tested(
        by: "CloudUploadTests/skippedUploads_go_theRecordStays", "ConflictTests/cloudTaken_theLocalEditIsDropped")),
  ]
}
