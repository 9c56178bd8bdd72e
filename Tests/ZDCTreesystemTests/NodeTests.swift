import Foundation
import Testing
import ZDCTreesystem

@Suite struct NodeTests {
  @Test func aFreshNodeHasItsIdsAndNothingFromTheCloud() {
    let node = ZDCNode(localUserID: "alice")
    #expect(node.localUserID == "alice")
    #expect(!node.isUploaded)
    #expect(node.cloudID.count == 26)
    #expect(node.eTag_rcrd == nil)
    #expect(node.lastModified == nil)
    #expect(ZDCNode(localUserID: "alice").uuid != node.uuid)
    #expect(ZDCNode(localUserID: "alice").cloudID != node.cloudID)
  }

  @Test func lastModifiedIsTheLaterOfRecordAndContent() {
    var node = ZDCNode(localUserID: "alice")
    node.lastModified_rcrd = Date(timeIntervalSince1970: 5)
    #expect(node.lastModified == Date(timeIntervalSince1970: 5))
    node.lastModified_data = Date(timeIntervalSince1970: 9)
    #expect(node.lastModified == Date(timeIntervalSince1970: 9))
    node.lastModified_rcrd = Date(timeIntervalSince1970: 11)
    #expect(node.lastModified == Date(timeIntervalSince1970: 11))
  }

  @Test func aNodeIsCodableWithAllItKnows() throws {
    var node = ZDCNode(localUserID: "alice")
    node.name = "soap"
    node.parentID = "p"
    node.treeID = "com.example.todo"
    node.isUploaded = true
    node.eTag_data = "v1"
    let item = ZDCShareItem()
    item.addPermission(.read)
    node.shareList.addShareItem(item, forUserID: "alice")
    node.cloudDataInfo = ZDCCloudDataInfo(
      dataSize: 3, metadataSize: 1, thumbnailSize: 2, thumbnailTag: "t", eTag: "v1", lastModified: nil)
    let copy = try JSONDecoder().decode(ZDCNode.self, from: JSONEncoder().encode(node))
    #expect(copy == node)
    #expect(copy.cloudID == node.cloudID)
  }

  @Test func theRootOfATrunkIsNamedAfterUserTreeAndTrunk() {
    #expect(ZDCTrunkNode.uuid(forLocalUserID: "u", treeID: "t.e", trunk: .home) == "u|t.e|home")
  }
}

@Suite struct ShareListTests {
  @Test func aFreshItemAllowsNothingUntilTheAppAddsLetters() {
    let item = ZDCShareItem()
    #expect(item.isEmpty)
    #expect(item.permissions == "")
    item.addPermission(.write)
    item.addPermission(.read)
    #expect(item.permissions == "rw")
    item.removePermission(.read)
    #expect(item.permissions == "w")
    #expect(!item.hasPermission(.read))
  }

  @Test func upperAndLowerCaseLettersAreOtherPermissions() {
    #expect(ZDCShareItem(permissions: "WrRB?r").permissions == "rRWB")
    #expect(ZDCShareItem(permissions: "W").hasPermission(.write) == false)
  }

  @Test func anItemThatExistsIsNotReplaced() {
    var list = ZDCShareList()
    let first = list.addShareItem(ZDCShareItem(permissions: "r"), forUserID: "bob")
    let second = list.addShareItem(ZDCShareItem(permissions: "rw"), forUserID: "bob")
    #expect(first && !second)
    #expect(list.shareItem(forUserID: "bob")?.permissions == "r")
    #expect(list.countOfUserIDs(excluding: "bob") == 0)
    list.removeShareItem(forUserID: "bob")
    #expect(!list.hasShareItem(forUserID: "bob"))
  }

  /// An item is an object; a list is a value.
  @Test func laterChangesOfAnItemDoNotReachAList() throws {
    let item = ZDCShareItem(permissions: "r")
    var list = ZDCShareList()
    list.addShareItem(item, forUserID: "bob")
    let before = list
    item.addPermission(.write)
    try #require(list.shareItem(forUserID: "bob")).addPermission(.share)
    #expect(list.shareItem(forUserID: "bob")?.permissions == "r")
    #expect(list == before && list.hashValue == before.hashValue)
    #expect(item == ZDCShareItem(permissions: "wr") && Set([item, ZDCShareItem(permissions: "rw")]).count == 1)
    let decoded = try JSONDecoder().decode(ZDCShareList.self, from: JSONEncoder().encode(list))
    #expect(decoded == list)
  }

  @Test func everyLetterSurvivesTheWayThroughAnAccessList() {
    let none = ZDCShareItem().aclPermissions
    for permission in ZDCSharePermission.allCases {
      let item = ZDCShareItem()
      item.addPermission(permission)
      #expect(item.aclPermissions != none)
      #expect(ZDCShareItem(item.aclPermissions) == item)
    }
  }
}
