// Reference parts 1 to 3.4: rows that name what a seed document names.
extension Promise {
  static let model: [Promise] = [
    // Part 1
    Promise(
      id: "seed-1.2-home", wording: "a tree has a trunk home, where the app's nodes are",
      state: .tested(
        by: "CloudCreateTests/createdNode_existsImmediately_withItsOperationsQueued",
        "NodeTests/theRootOfATrunkIsNamedAfterUserTreeAndTrunk")),
    Promise(
      id: "seed-1.2-inbox", wording: "messages of others are nodes in the trunk inbox",
      state: .tested(by: "MessageTests/bothPathsNameTheirTrunks")),
    Promise(
      id: "seed-1.2-outbox", wording: "sent messages are nodes in the trunk outbox",
      state: .tested(by: "MessageTests/bothPathsNameTheirTrunks")),
    Promise(
      id: "seed-1.4-ZDCTreesystemPath", wording: "a path is a trunk and names, without separators to escape",
      state: .tested(
        by: "TreesystemPathTests/aPathHasATrunkAndNames", "TreesystemPathTests/anyNameComesBackFromTheTextForm")),
    Promise(
      id: "seed-1.4-ZDCCloudPath", wording: "a place in a user's tree that can be sent as text",
      state: .tested(by: "GraftTests/aCloudPath_isTextWithoutNames")),
    Promise(
      id: "seed-1.7-grafts", wording: "another user's branch is grafted into the own tree and acts like a local one",
      state: .tested(by: "GraftTests/theOtherDevicesFollow", "Seed004Tests/seed004_invitingAndAccepting")),
    Promise(
      id: "seed-1.7-cloudPathMayBeOld", wording: "an invited branch is found after its owner renamed or moved it",
      state: .tested(by: "GraftTests/theOwnersNamesAreTheirOwn")),
    Promise(
      id: "seed-1.9-inheritance", wording: "giving access to a branch is one recursive call",
      state: .tested(by: "BranchTests/aBranchIsShared", "BranchTests/aBranchIsSharedTwice")),
    Promise(
      id: "seed-1.10-severalLocalUsers",
      wording: "several local users at a time, each with their own tree, queue and pull",
      state: .tested(
        by: "LocalUserTests/twoAccounts_onOneDevice_doNotSeeEachOther",
        "LocalUserTests/deletedAccount_takesItsTree_andLeavesTheOther")),
    Promise(
      id: "seed-1.12-anyName", wording: "any text is a name: slashes, emoji, right-to-left",
      state: .tested(by: "CloudCreateTests/anyOtherText_isAName", "NameFoldingTests/hostileLookingNamesAreJustNames")),
    // Part 2
    Promise(
      id: "seed-2.5-layout", wording: "header, metadata, thumbnail and data are one content, each readable alone",
      state: .tested(
        by: "EndToEndTests/contentOfAnySize_withMetadataAndThumbnail_comesBackEqual",
        "ContentRangeTests/eachSectionIsReadAlone")),
    // Parts 3.1 to 3.4
    Promise(
      id: "seed-3.1-init", wording: "made of a delegate and a configuration; the delegate is held strongly",
      state: .tested(
        by: "FrameworkTests/delegate_isHeldStrongly_andMayBeReplaced", "FrameworkTests/managersAreNil_untilUnlocked")),
    Promise(
      id: "seed-3.1-reachability", wording: "the app learns when the network is there again",
      state: .tested(
        by: "MarkedDownloadTests/aDownloadThatFailed_isMadeAgain_whenTheNetworkReturns",
        "EventTests/firstConnection_isNoReconnection")),
    Promise(
      id: "seed-3.1-cloudTransaction", wording: "a transaction gives the tree of one local user; nil for a stranger",
      state: .tested(
        by: "CloudCreateTests/unknownUser_hasNoTree_andUsersDoNotSeeEachOther",
        "SeedTests/seed000_createLinkTagModifyDelete")),
    Promise(
      id: "seed-3.2-ZDCConfig", wording: "a configuration is named after the app's tree",
      state: .tested(by: "FrameworkTests/treeIDThatIsNone_isRefused", "FrameworkTests/goodAddress_hasItsOrigin")),
    Promise(
      id: "seed-3.3-init", wording: "a path made of names begins in home",
      state: .tested(by: "TreesystemPathTests/aPathHasATrunkAndNames")),
    Promise(
      id: "seed-3.3-initWithTrunk", wording: "a path may name its trunk; without names it is the trunk",
      state: .tested(by: "TreesystemPathTests/aTrunkHasNoParentAndItsOwnName")),
    Promise(
      id: "seed-3.3-appendingComponent", wording: "a path grows by one name",
      state: .tested(by: "TreesystemPathTests/aPathHasATrunkAndNames", "SeedTests/seed000_createLinkTagModifyDelete")),
    Promise(
      id: "seed-3.4-notSubclassed", wording: "a node is a value that apps do not subclass; their objects are their own",
      state: .tested(by: "SeedPromiseTests/anAppSubclassesNothing")),
    Promise(
      id: "seed-3.4-uuidAndUser", wording: "a node has a local uuid and names its local user",
      state: .tested(by: "NodeTests/aFreshNodeHasItsIdsAndNothingFromTheCloud")),
    Promise(
      id: "seed-3.4-nameAndParent", wording: "a changed name or parent is a move once it is stored",
      state: .tested(
        by: "CloudMoveTests/renamedNode_keepsItsIdentity_andIsQueuedAsAMove",
        "CloudMoveTests/movedNode_takesItsBranchAlong")),
    Promise(
      id: "seed-3.4-shareList", wording: "a node tells who has access to it",
      state: .tested(
        by: "ShareListTests/everyLetterSurvivesTheWayThroughAnAccessList",
        "CloudCreateTests/createdNode_existsImmediately_withItsOperationsQueued")),
    Promise(
      id: "seed-3.4-cloudID", wording: "a node has an ID that all members share, and says whether the cloud has it",
      state: .tested(
        by: "CloudCreateTests/createdNode_existsImmediately_withItsOperationsQueued",
        "NodeManagerTests/lookups_findTheSameNodeEveryWay")),
  ]
}
