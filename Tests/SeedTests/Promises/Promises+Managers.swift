// Reference parts 3.7 to 8: managers and the delegate.
extension Promise {
  static let managersAndDelegate: [Promise] = [
    // Part 3.7 to 3.20
    Promise(
      id: "seed-3.7-ZDCData", wording: "content from memory, from a file, from a sealed file, or later",
      state: .tested(by: "ContentFormTests/everyForm_ofAnySize_arrives")),
    Promise(
      id: "seed-3.7-ZDCDataPromise", wording: "content that comes later: fulfilled, rejected, by a closure",
      state: .tested(
        by: "DataTests/promise_isWaitedFor_andTheFirstAnswerCounts", "DataTests/closureForms_answerByThemselves",
        "DataTests/rejectedPromise_isNoContent_neverEmptyContent")),
    Promise(
      id: "seed-3.8-decryptCryptoFile", wording: "a downloaded file is decrypted into memory",
      state: .tested(
        by: "SeedTests/seed002_downloadingDecryptsIntoMemory",
        "DownloadTests/aLargeContentComesInOneRequest_andItsHashesInAnother_throughFilesOfBothKinds")),
    Promise(
      id: "seed-3.9-importNodeData", wording: "the disk manager takes content before it is uploaded",
      state: .tested(
        by: "SeedPromiseTests/contentFromTheDiskManager_isUploaded",
        "DiskImportTests/memory_aFile_andACryptoFile_comeBackAsTheyWere",
        "DiskManagerTests/anUploadFromTheDiskManager_migratesToTheCacheWhenItIsDone")),
    Promise(
      id: "seed-3.9-nodeData", wording: "the disk manager gives a node's content",
      state: .tested(
        by: "SeedPromiseTests/contentFromTheDiskManager_isUploaded",
        "DiskImportTests/memory_aFile_andACryptoFile_comeBackAsTheyWere", "SeedTests/seed000_dataFromACryptoFile")),
    Promise(
      id: "seed-3.9-thumbnails", wording: "the disk manager keeps thumbnails",
      state: .tested(
        by: "SeedTests/seed002_aCellShowsItsThumbnail",
        "DiskImportTests/memory_aFile_andACryptoFile_comeBackAsTheyWere",
        "DiskManagerTests/aDownloadIsKeptAsTheOptionsSay",
        "ThumbnailTests/firstFromTheServer_thenFromMemory_afterARelaunchFromDisk"
      )),
    Promise(
      id: "seed-3.9-deleteFileIfUnmanaged", wording: "a downloaded file is deleted unless the disk manager keeps it",
      state: .tested(
        by: "SeedPromiseTests/aDownloadedFile_isDeleted_unlessItIsManaged",
        "DiskImportTests/aUrlOfTheDiskManagersIsLeftAlone_anotherIsDeleted",
        "DiskManagerTests/aDownloadIsKeptAsTheOptionsSay")),
    Promise(
      id: "seed-3.9-exportCryptoFile", wording: "an export of the disk manager has a sealed file",
      state: .tested(
        by: "SeedPromiseTests/contentFromTheDiskManager_isUploaded", "SeedTests/seed000_dataFromACryptoFile",
        "DiskLimitTests/aReaderNeverLosesItsFile_whateverBecomesOfTheRow")),
    Promise(
      id: "seed-3.10-ZDCNodeMetaComponents", wording: "header, metadata and thumbnail can be asked for apart",
      state: .tested(
        by: "DownloadTests/metadataAndThumbnailComeWithoutTheData", "CallbackDownloadTests/metadataInsideACallback")),
    Promise(
      id: "seed-3.10-downloadNodeMeta", wording: "downloads the small sections without the data",
      state: .tested(by: "DownloadTests/metadataAndThumbnailComeWithoutTheData")),
    Promise(
      id: "seed-3.10-downloadNodeData", wording: "downloads content as a sealed file",
      state: .tested(
        by: "DownloadTests/contentsOfAllSizesComeBackAsTheyWere", "SeedTests/seed002_downloadingDecryptsIntoMemory",
        "SeedTests/seed001_downloadsInTheCallback", "CallbackDownloadTests/dataInsideACallback")),
    Promise(
      id: "seed-3.10-options", wording: "options decide where the file is kept, and may name the requester",
      state: .tested(by: "DownloadSharingTests/underOneTag_onlyTheFirstBlockIsCalled")),
    Promise(
      id: "seed-3.10-progress", wording: "a ticket knows how far its download is",
      state: .tested(by: "DownloadSharingTests/theBlockIsCalledOnceOnItsQueue_andTheTicketKnowsHowFar")),
    Promise(
      id: "seed-3.10-joined", wording: "requests for one item share one transfer",
      state: .tested(by: "DownloadSharingTests/requestsForOneNodeJoinOneTransfer_andEachHasItsOwnFile")),
    Promise(
      id: "seed-3.11-fetchNodeThumbnail", wording: "the image manager gives a thumbnail from memory, disk or network",
      state: .tested(
        by: "SeedTests/seed002_aCellShowsItsThumbnail",
        "ThumbnailTests/firstFromTheServer_thenFromMemory_afterARelaunchFromDisk",
        "ThumbnailTests/aThousandRequestsMakeOneDownload", "CallbackDownloadTests/thumbnailsInsideACallback")),
    Promise(
      id: "seed-3.12-progress", wording: "the progress manager tells of uploads and downloads by node",
      state: .tested(
        by: "TransferProgressTests/aDownloadsProgress_survivesItsRetries",
        "TransferProgressTests/smallUploads_areListedWhileTheirRequestIsUnderWay")),
    Promise(
      id: "seed-3.14-path", wording: "the path of a node",
      state: .tested(by: "NodeManagerTests/lookups_findTheSameNodeEveryWay")),
    Promise(
      id: "seed-3.15-ZDCCloudPath", wording: "a cloud path becomes text and is read from it",
      state: .tested(by: "GraftTests/aCloudPath_isTextWithoutNames")),
    Promise(
      id: "seed-3.15-ZDCGraftInvite", wording: "an invitation holds cloud id and cloud path",
      state: .tested(by: "GraftTests/aCloudPath_isTextWithoutNames")),
    Promise(
      id: "seed-3.16-ZDCShareItem", wording: "an item begins without letters and is given them one by one",
      state: .tested(
        by: "ShareListTests/aFreshItemAllowsNothingUntilTheAppAddsLetters",
        "ShareListTests/upperAndLowerCaseLettersAreOtherPermissions")),
    Promise(
      id: "seed-3.17-displayName", wording: "users have names that can be shown",
      state: .tested(
        by: "ProfileTests/theNameAndTheAvatarReachThePeopleWithWhomTheUserShares",
        "ProfileTests/aStrangersNameIsNotShown_beforeTheUserAccepts")),
    Promise(
      id: "seed-3.17-fetchUser", wording: "a user who is not known here is fetched",
      state: .tested(by: "ContactTests/states", "ContactTests/anUnknownUserIsNotFound")),
    Promise(
      id: "seed-3.17-allLocalUsers", wording: "the local users of this device",
      state: .tested(by: "AccountTests/aSecondAccountIsAnotherOne")),
    Promise(
      id: "seed-3.18-connections", wording: "connections for the user interface, for reading and for writing",
      state: .tested(
        by: "DatabaseTransactionTests/seedsSpelling_returnsImmediately_blocksRunInOrder",
        "DatabaseTransactionTests/writingOnAReadingConnection_isRefused",
        "SeedTests/seed000_createLinkTagModifyDelete")),
    Promise(
      id: "seed-3.18-userID", wording: "a transaction finds a user by id",
      state: .tested(by: "SeedPromiseTests/lookUps_workInATransactionThatOnlyReads")),
    Promise(
      id: "seed-3.20-sharedUsersView", wording: "a screen to choose with whom to share, which the sample brings",
      state: .tested(by: "SharingPageTests/peopleAreFoundByTheirID_andSharedWith")),
    // Part 4, the delegate
    Promise(
      id: "seed-4.1-data", wording: "content is asked for in a transaction when it is sent, the newest state",
      state: .tested(by: "QueueTests/manyEdits_areOneUpload", "PushAheadTests/eachContent_isAskedForOnce")),
    Promise(
      id: "seed-4.1-metadata", wording: "an optional section, downloadable alone",
      state: .tested(by: "EndToEndTests/contentOfAnySize_withMetadataAndThumbnail_comesBackEqual")),
    Promise(
      id: "seed-4.1-thumbnail", wording: "an optional picture, and its tag tells whether it changed",
      state: .tested(
        by: "EndToEndTests/contentOfAnySize_withMetadataAndThumbnail_comesBackEqual",
        "CloudStorageTests/exactSizesAndThumbnailTag_areSealed")),
    Promise(
      id: "seed-4.1-didPushNodeData", wording: "told once for each content, in the transaction that stores its version",
      state: .tested(
        by: "DelegateTests/didPush_hasTheNewVersion_andAnEmptyQueue",
        "DelegateTests/didPush_isCalledOnce_forEachContent")),
    Promise(
      id: "seed-4.1-didSendMessage", wording: "told for each recipient that a message reached",
      state: .tested(by: "MessageTests/eachRecipientGetsTheMessageOnce_andEachCallbackComesOnce")),
    Promise(
      id: "seed-4.1-dataForMessage", wording: "the content of a message is asked for when it is sent",
      state: .tested(by: "MessageTests/aMessageWaitsForItsDependencies")),
    Promise(
      id: "seed-4.2-didDiscoverNewNode", wording: "a new node, parents first, nothing downloaded",
      state: .tested(
        by: "DelegateTests/newNode_isInTheDatabase_withItsParent", "RequestTests/noContent_isFetchedUnasked")),
    Promise(
      id: "seed-4.2-didDiscoverModifiedNode", wording: "a changed record or a changed content, never for own changes",
      state: .tested(by: "EndToEndTests/everyChange_inTurn_arrives", "DelegateTests/ownChanges_areNotAnnounced")),
    Promise(
      id: "seed-4.2-didDiscoverMovedNode", wording: "a move, also one that the framework made",
      state: .tested(
        by: "EndToEndTests/everyChange_inTurn_arrives",
        "DuplicateNameTests/bothNodesAreKept_theLaterOneIsRenamed_onEveryDevice")),
    Promise(
      id: "seed-4.2-didDiscoverDeletedNode", wording: "a deletion, told with its time, links still to be found",
      state: .tested(by: "DelegateTests/deletedNode_isGone_withItsChildren_andItsObjectIsStillLinked")),
    Promise(
      id: "seed-4.2-didDiscoverDeletedDirtyNode",
      wording: "a deletion that meets queued changes, told while everything is there",
      state: .tested(
        by: "LinkPromiseTests/aDeletionThatMeetsChanges_keepsThemAndTheWayToThem", "DirtyDeleteTests/order",
        "DirtyDeleteTests/anUnansweredDelete_keepsThePath_andWaits")),
    Promise(
      id: "seed-4.2-didDiscoverConflict", wording: "a conflict of path or content, for the app to solve",
      state: .tested(by: "ConflictTests/merged_bothEditsAreThere", "ConflictTests/pathConflict_theAppsOwnNameIsTaken")),
    Promise(
      id: "seed-4.4-backgroundDownloads",
      wording: "a download that outlived the process is handed to the delegate (run on Linux; not on iOS)",
      state: .tested(
        by: "BackgroundDownloadTests/dataThatWasUnderWay_comesThroughTheDelegate_once",
        "BackgroundDownloadTests/metaThatWasUnderWay_comesThroughTheDelegate_once",
        "HandOverDownloadTests/dataThatTheSystemFetched_isDelivered_withoutARequestForContent",
        "HandOverDownloadTests/sectionsThatTheSystemFetched_areDelivered_withoutARequest",
        "HandOverUploadTests/partsThatTheSystemSent_areNotSentAgain")),
    Promise(
      id: "seed-4.5-preferredNodes", wording: "the app's preferred branches are pulled first",
      state: .tested(by: "PullOrderTests/preferredBranch_overtakesShallowerNodes")),
    // Part 8
    Promise(
      id: "seed-8.1-ZeroDarkTodo", wording: "the sample app of the seeds",
      state: .tested(
        by: "ListTests/tasksOfOneDevice_areShownOnTheOther", "SharingTests/aListIsShared_andBothEditIt",
        "SharingCommandTests/aListIsShared_acceptedEditedAndLeft")),
  ]
}
