// Promises of the original documentation that are easy to miss, document by document.
extension Promise {
  static let easyToMiss: [Promise] = [
    // Seed 000, pushing
    Promise(
      id: "check-000-1",
      wording:
        "results of creating, deleting and queueing an upload may be ignored; also of messages and grafts",
      state: .tested(
        by: "SeedPromiseTests/resultsMayBeIgnored_andTryIsNotNeeded", "SeedTests/seed000_createLinkTagModifyDelete",
        "Seed004Tests/resultsOfMessagesAndGrafts_mayBeIgnored")),
    Promise(
      id: "check-000-2", wording: "look-ups work on a transaction that only reads",
      state: .tested(by: "SeedPromiseTests/lookUps_workInATransactionThatOnlyReads")),
    Promise(
      id: "check-000-3", wording: "setObject, setTag and queueDataUpload need no try",
      state: .tested(
        by: "SeedPromiseTests/resultsMayBeIgnored_andTryIsNotNeeded",
        "CloudLinkTests/callWithoutTry_thatTheDatabaseFails_takesTheWholeTransactionBack")),
    Promise(
      id: "check-000-4", wording: "a node tells when it was changed and which versions it has",
      state: .tested(
        by: "PullPromiseTests/everythingButContent_isThereAfterAPull",
        "NodeTests/lastModifiedIsTheLaterOfRecordAndContent")),
    Promise(
      id: "check-000-5", wording: "an upload resumes after a relaunch; the app is asked again, once",
      state: .tested(
        by: "LargeContentTests/contentInMemory_isContinuedIfItIsEqual",
        "LargeContentTests/uploadThatResumes_asksTheAppOncePerLaunch")),
    Promise(
      id: "check-000-6", wording: "a promise has two methods and a form with a closure",
      state: .tested(
        by: "DataTests/promise_isWaitedFor_andTheFirstAnswerCounts", "DataTests/closureForms_answerByThemselves")),
    Promise(
      id: "check-000-7",
      wording: "node, queue and the app's rows are one commit, and nothing is sent before it is on disk",
      state: .tested(
        by: "PushPromiseTests/nothingIsSent_beforeTheCommitIsOnDisk",
        "CloudCreateTests/throwingFromTheBlock_takesNodesAndQueueBack")),
    Promise(
      id: "check-000-8", wording: "didPushNodeData finds the node updated in its transaction",
      state: .tested(by: "DelegateTests/didPush_hasTheNewVersion_andAnEmptyQueue")),
    // Seed 001, the Todo sample
    Promise(
      id: "check-001-1", wording: "createNode(with:) is another spelling",
      state: .tested(by: "SeedTests/seed001_createAndSupplyDataInThreeWays")),
    Promise(
      id: "check-001-2", wording: "a list's node may be named by the list's uuid or by its title",
      state: .tested(by: "SeedPromiseTests/aListsNode_isNamedByUUIDOrTitle")),
    Promise(
      id: "check-001-3", wording: "~/foo/bar is understood as a path",
      state: .tested(by: "TreesystemPathTests/theFormsThatPeopleTypeAreRead")),
    Promise(
      id: "check-001-4", wording: "downloads can be asked for without a completion queue",
      state: .tested(by: "SeedPromiseTests/downloads_takeAnyQueue_orNone")),
    Promise(
      id: "check-001-5", wording: "a URL can be a tag, and comes back as one",
      state: .tested(by: "CloudLinkTests/tagsKeepTheirType")),
    Promise(
      id: "check-001-6", wording: "the nodes that are marked as needing download can be listed",
      state: .tested(by: "CloudLinkTests/marks_addUp_anyOfThemCounts_andANewerVersionKeepsThem")),
    Promise(
      id: "check-001-7", wording: "ThumbnailManager is another name of the image manager",
      state: .tested(
        by: "SeedPromiseTests/theThumbnailManager_isTheImageManager", "SeedTests/seed002_aCellShowsItsThumbnail")),
    Promise(
      id: "check-001-8", wording: "deleting a parent deletes children that this device has never seen",
      state: .tested(by: "PushPromiseTests/aBranchIsDeleted_withWhatThisDeviceHasNeverSeen")),
    Promise(
      id: "check-001-9", wording: "an app subclasses nothing",
      state: .tested(by: "SeedPromiseTests/anAppSubclassesNothing")),
    Promise(
      id: "check-001-10", wording: "contents of many gigabytes survive interruptions",
      state: .tested(
        by: "LargeContentTests/device_diesAnywhere_losesNothing_andRepeatsAtMostWhatWasUnderWay",
        "LargeContentTests/relaunchedDevice_sendsOnlyWhatTheServerDoesNotHave")),
    // Seed 002, pulling
    Promise(
      id: "check-002-1", wording: "names, access and times of every node are there without any download",
      state: .tested(by: "PullPromiseTests/everythingButContent_isThereAfterAPull")),
    Promise(
      id: "check-002-2", wording: "no content is requested unasked",
      state: .tested(by: "RequestTests/noContent_isFetchedUnasked")),
    Promise(
      id: "check-002-3", wording: "local copies can be deleted, and downloaded again",
      state: .tested(
        by: "PullPromiseTests/aDeletedLocalCopy_isDownloadedAgain",
        "DiskImportTests/anImportReplaces_keepsItsETag_andADeleteTakesAll")),
    Promise(
      id: "check-002-4",
      wording: "a thumbnail's first closure runs before the call returns; the second only if it was announced",
      state: .tested(
        by: "SeedTests/seed002_aCellShowsItsThumbnail",
        "ThumbnailTests/firstFromTheServer_thenFromMemory_afterARelaunchFromDisk")),
    Promise(
      id: "check-002-5", wording: "a second request for the same item joins the first",
      state: .tested(by: "DownloadSharingTests/requestsForOneNodeJoinOneTransfer_andEachHasItsOwnFile")),
    Promise(
      id: "check-002-6", wording: "a downloaded file is the app's to delete, unless the disk manager keeps it",
      state: .tested(
        by: "SeedPromiseTests/aDownloadedFile_isDeleted_unlessItIsManaged",
        "DiskManagerTests/aDownloadIsKeptAsTheOptionsSay")),
    Promise(
      id: "check-002-7", wording: "any dispatch queue may be the completion queue",
      state: .tested(by: "SeedPromiseTests/downloads_takeAnyQueue_orNone")),
    // Seed 003, the delegate
    Promise(
      id: "check-003-1", wording: "which delegate methods are required and which are optional",
      state: .tested(
        by: "SeedDelegateTests/sevenMethods_areEnough",
        "SeedDelegateTests/everyMethodOfTheDocument_hasTheProtocolsSignature")),
    Promise(
      id: "check-003-2", wording: "no content for a message parks it",
      state: .tested(
        by: "Seed004Tests/nilForAMessage_parksIt", "MessageTests/aMessageForWhichTheAppHasNothing_isParked")),
    Promise(
      id: "check-003-3", wording: "when a message is sent its operation is gone from the queue",
      state: .tested(by: "MessageTests/whenAMessageIsSent_itsOperationIsGoneFromTheQueue")),
    Promise(
      id: "check-003-4", wording: "a call tells of a changed record or a changed content; of both in two calls",
      state: .tested(by: "PullPromiseTests/recordAndContentChanged_areTwoCalls")),
    Promise(
      id: "check-003-5", wording: "a move with a rename is one call",
      state: .tested(by: "PullPromiseTests/movedAndRenamedTogether_isOneCall")),
    Promise(
      id: "check-003-6", wording: "each call finds the database updated, in the same transaction",
      state: .tested(
        by: "DelegateTests/newNode_isInTheDatabase_withItsParent",
        "DelegateTests/delegateThatThrows_holdsItsOwnNodeOnly_andGetsItAgain")),
    Promise(
      id: "check-003-7",
      wording: "a deletion that meets queued changes: told first; then clean branches go one by one; dirty nodes "
        + "and the way to them stay",
      state: .tested(
        by: "LinkPromiseTests/aDeletionThatMeetsChanges_keepsThemAndTheWayToThem", "DirtyDeleteTests/order",
        "DirtyDeleteTests/anUnansweredDelete_keepsThePath_andWaits")),
    Promise(
      id: "check-003-8", wording: "background calls come for successes only, and only when no caller waits",
      state: .tested(
        by: "BackgroundDownloadTests/aFailureIsNotAnnounced_andIsRetriedLater",
        "BackgroundDownloadTests/aRepeatedRequest_replacesTheDelegateCall")),
    Promise(
      id: "check-003-9", wording: "a node's content may be empty",
      state: .tested(
        by: "ContentFormTests/everyForm_ofAnySize_arrives",
        "EndToEndTests/contentOfAnySize_withMetadataAndThumbnail_comesBackEqual",
        "AppErrorTests/zeroBytes_areAContentLikeOthers")),
    Promise(
      id: "check-003-10", wording: "metadata and thumbnail may have 16 MiB and no more",
      state: .tested(by: "ContentFormTests/sections_mayHave16MiB_andNoMore")),
    Promise(
      id: "check-003-11", wording: "the time of a deletion may be unknown",
      state: .tested(by: "PullPromiseTests/theTimeOfADeletion_isTheServers_orUnknown")),
    Promise(
      id: "check-003-12", wording: "preferred nodes change the order of a pull that is under way",
      state: .tested(
        by: "PullOrderTests/preferredBranch_overtakesShallowerNodes",
        "PullOrderTests/preferenceSetDuringAPull_changesItsOrder")),
    // Seed 004, collaboration
    Promise(
      id: "check-004-1", wording: "a transaction finds users and nodes by id",
      state: .tested(
        by: "SeedPromiseTests/lookUps_workInATransactionThatOnlyReads",
        "ListMemberTests/aCallbackFindsAllMembersOfItsList")),
    Promise(
      id: "check-004-2", wording: "a fresh share item is empty, and sharing with it is refused as a mistake",
      state: .tested(by: "ListChangeTests/misuse_isATypedError")),
    Promise(
      id: "check-004-3", wording: "each member is notified of every change",
      state: .tested(by: "SharedTreeTests/membersCreateEditMoveAndDelete", "SharedTreeTests/aChangedListIsAnnounced")),
    Promise(
      id: "check-004-4", wording: "several can be invited to a branch at once",
      state: .tested(by: "GraftTests/severalGuests")),
    Promise(
      id: "check-004-5", wording: "an invitation is not sent before the access it depends on",
      state: .tested(by: "MessageTests/anInvitationLeavesAfterTheAccessList")),
    Promise(
      id: "check-004-6", wording: "an invitation is made while the message is written",
      state: .tested(
        by: "Seed004Tests/seed004_invitingAndAccepting", "GraftTests/anInvite_isThereOnceTheRecipientIsListed")),
    Promise(
      id: "check-004-7", wording: "the sender's other devices find the message in the outbox",
      state: .tested(by: "MessageTests/theOtherDevicesOfBothGetTheMessageByTheLog")),
    Promise(
      id: "check-004-8", wording: "the sender of a message is proven, not claimed",
      state: .tested(by: "HostileMessageTests/aForgedMessageStaysOut_andTheNextOneArrives")),
    Promise(
      id: "check-004-9", wording: "a graft announces its pointer, then the branch in order",
      state: .tested(
        by: "GraftTests/aGraft_showsTheBranchAtItsPath_announcedFromTheTop", "GraftTests/theOtherDevicesFollow")),
    Promise(
      id: "check-004-10", wording: "the form of an invitation is the app's",
      state: .tested(by: "Seed004Tests/seed004_invitingAndAccepting")),
    Promise(
      id: "check-004-11", wording: "a grafted list acts like a local one; nodes created there belong to the owner",
      state: .tested(by: "GraftTests/theOtherDevicesFollow", "GraftTests/theNodeIsUsableBeforeThePull")),
    Promise(
      id: "check-004-12", wording: "the invited user finds the node after a rename or move",
      state: .tested(by: "GraftTests/theOwnersNamesAreTheirOwn")),
  ]
}
