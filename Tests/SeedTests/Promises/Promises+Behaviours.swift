// The 25 subtle behaviours of the original's push, pull and links, by number. Where our protocol uses another
// mechanism, the row describes what an app sees.
extension Promise {
  static let behaviours: [Promise] = [
    Promise(
      id: "behaviour-1",
      wording: "content and record are made when they are sent, from what is there then; the queue holds intent",
      state: .tested(by: "PushAheadTests/changesDuringPreparation_areSent", "QueueTests/manyEdits_areOneUpload")),
    Promise(
      id: "behaviour-2",
      wording: "which queued uploads one content satisfies is decided when the app gives it, by all three parts",
      state: .tested(
        by: "PushPromiseTests/aPartThatIsNotTheLatest_isSentInTurn",
        "QueueTests/largeContentQueuedWhileItsUploadRuns_isSentAfterwards",
        "ConflictBehaviourTests/consolidation_isASnapshot", "ConflictBehaviourTests/versionsOfTheirOwn_areSentInTurn")),
    Promise(
      id: "behaviour-3",
      wording: "after an own success queued uploads are based on the new version; after a pull they are not",
      state: .tested(
        by: "QueueTests/contentQueuedWhileAnUploadRuns_isSentAfterwards",
        "CloudUploadTests/editAfterOthersChangedTheContent_staysBasedOnWhatTheAppHas",
        "AppErrorTests/answersLate_afterAnotherEdit_bothAreSent",
        "ConflictBehaviourTests/pulledVersion_isNotTheBaseOfAQueuedEdit")),
    Promise(
      id: "behaviour-4", wording: "a conflict of content holds that node only, and is asked again after a relaunch",
      state: .tested(by: "ConflictTests/held_blocksThisNodeOnly_andIsAskedAgainAfterARelaunch")),
    Promise(
      id: "behaviour-5", wording: "merged while the upload was on its way: no conflict is raised",
      state: .tested(
        by: "PushPromiseTests/mergedWhileTheUploadWasRefused_isNoConflict",
        "ConflictBehaviourTests/mergedInTheModifiedCallback_raisesNoConflict",
        "ConflictBehaviourTests/mergedWhileItIsRefused_raisesNoConflict")),
    Promise(
      id: "behaviour-6",
      wording: "after a refusal the push continues once a pull has fetched the missing changes, and does not loop",
      state: .tested(
        by: "FaultTests/overtakenAgainAndAgain_getsThrough",
        "VerificationTests/anAppThatQueuesForEver_doesNotHoldTheSync")),
    Promise(
      id: "behaviour-7",
      wording: "own changes are recognised, also when the answer was lost: no second node, no callback",
      state: .tested(
        by: "DelegateTests/ownChanges_areNotAnnounced", "FaultTests/lostResponse_neverMakesASecondNode",
        "FaultTests/lostResponse_thenRelaunch_thenPull_isRecognisedAsOwn")),
    Promise(
      id: "behaviour-8", wording: "a node whose first upload is under way is never announced as new",
      state: .tested(by: "FaultTests/lostResponse_thenRelaunch_thenPull_isRecognisedAsOwn")),
    Promise(
      id: "behaviour-9", wording: "a pull does not rediscover a node whose deletion is still queued",
      state: .tested(by: "PushPromiseTests/nodesDeletedHere_areNotFoundAgainByAPull")),
    Promise(
      id: "behaviour-10", wording: "a branch is deleted as a whole, including nodes that others have changed or added",
      state: .tested(by: "PushPromiseTests/aBranchIsDeleted_withWhatThisDeviceHasNeverSeen")),
    Promise(
      id: "behaviour-11",
      wording: "a deletion that meets queued changes keeps them and the way to them; kept again, parents go first",
      state: .tested(
        by: "LinkPromiseTests/aDeletionThatMeetsChanges_keepsThemAndTheWayToThem",
        "ConflictTests/keptNode_queuedAgain_isANewNodeWithItsOldUUID",
        "CloudUploadTests/nodeKeptAfterARemoteDelete_isQueuedAgainWithItsParents",
        "DirtyDeleteTests/keptInsideTheCallback_isSentByTheSameSync")),
    Promise(
      id: "behaviour-12",
      wording: "a deletion takes the queued changes of its branch along, and ends uploads under way",
      state: .tested(
        by: "CloudDeleteTests/pushedBranch_isOneDelete_andItsQueuedChangesGo",
        "PushPromiseTests/anUploadThatIsNoLongerNeeded_ends", "ConflictBehaviourTests/deletion_endsUploads")),
    Promise(
      id: "behaviour-13", wording: "who moves a node last is right, and what is queued for it follows it",
      state: .tested(
        by: "PushPromiseTests/aRemoteMove_takesTheQueuedEditAlong", "ConvergenceTests/twoDevices_oneOutcome",
        "JournalCaptureTests/droppedMove")),
    Promise(
      id: "behaviour-14",
      wording: "a taken name: the app is asked, then the local node is renamed, and the app is notified",
      state: .tested(
        by: "PushPromiseTests/aTakenName_theAppIsAsked_thenNotified",
        "ConflictTests/pathConflict_theAppsOwnNameIsTaken",
        "JournalCaptureTests/automaticRename")),
    Promise(
      id: "behaviour-15", wording: "names are compared in one folded form, here and in the cloud; case counts",
      state: .tested(
        by: "CloudCreateTests/sameLettersInAnotherForm_areTheSameName_otherCaseIsNot",
        "EndToEndTests/namesThatDifferInFormOnly_areTheSameName",
        "NameFoldingTests/everyRowOfUnicodesNormalizationTestFoldsAsPublished")),
    Promise(
      id: "behaviour-16", wording: "a pointer is found last on a path and passed through before",
      state: .tested(by: "GraftTests/theOtherDevicesFollow")),
    Promise(
      id: "behaviour-17", wording: "an invitation holds id and path, and outlives a rename",
      state: .tested(by: "GraftTests/theOwnersNamesAreTheirOwn", "GraftTests/aCloudPath_isTextWithoutNames")),
    Promise(
      id: "behaviour-18", wording: "access is that of the zone; a recursive share reaches all of it",
      state: .tested(by: "BranchTests/everyMemberChangesTheBranch", "BranchTests/aBranchInsideOfABranch")),
    Promise(
      id: "behaviour-19", wording: "a key is wrapped for nobody whom only the server named",
      state: .tested(by: "RecipientTests/aUserWhomOnlyTheServerNames_getsNoKey")),
    Promise(
      id: "behaviour-20", wording: "a node that cannot be read keeps its name and place, and stops nothing else",
      state: .tested(
        by: "PullPromiseTests/aNodeThatCannotBeRead_keepsItsPlace_andStopsNothing",
        "UnreadableRecordTests/aSpoiledRoot")),
    Promise(
      id: "behaviour-21",
      wording: "a pull announces parents first, shallow first, recent first, preferred before all, in batches",
      state: .tested(
        by: "PullOrderTests/parentBeforeChild_shallowBeforeDeep_recentFirst",
        "PullOrderTests/preferredBranch_overtakesShallowerNodes")),
    Promise(
      id: "behaviour-22",
      wording: "a push waits for the first pull and for the network; a pull that breaks off leaves nothing half done",
      state: .tested(
        by: "PushPromiseTests/thePush_waitsForTheFirstPull", "QueueTests/offline_theQueueGrows_andGoesOutLater",
        "RelaunchTests/pullingDevice_diesAnywhere_missesNothing")),
    Promise(
      id: "behaviour-23", wording: "many changes of one node arrive as one, and a pull resumes where it stopped",
      state: .tested(
        by: "PullPromiseTests/manyChangesOfOneNode_areReportedAsOne",
        "RelaunchTests/pullingDevice_diesAnywhere_missesNothing")),
    Promise(
      id: "behaviour-24", wording: "a mark of what is to be downloaded outlasts a relaunch and a newer version",
      state: .tested(
        by: "LinkPromiseTests/aDownloadThatRacedWithANewerVersion_doesNotClearTheMark",
        "LinkPromiseTests/linksTagsAndMarks_stayWithTheirNode")),
    Promise(
      id: "behaviour-25",
      wording: "a link may come before its object, ends with either, and is still found while a deletion is reported",
      state: .tested(
        by: "CloudLinkTests/link_isFoundFromBothSides", "CloudLinkTests/deletedObject_deletesItsNode_inTheCloudToo",
        "DelegateTests/deletedNode_isGone_withItsChildren_andItsObjectIsStillLinked",
        "LinkPromiseTests/aNodeKeptAfterARemoteDelete_keepsItsLinkTagsAndMarks")),
  ]
}
