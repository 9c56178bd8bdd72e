import Foundation
import Testing
import ZDCTreesystem

@Suite struct TreesystemPathTests {
  @Test func aPathHasATrunkAndNames() {
    let path = ZDCTreesystemPath(pathComponents: ["foo", "bar"])
    #expect(path.trunk == .home)
    #expect(path.fullPath() == "home:/foo/bar")
    #expect(path.relativePath() == "/foo/bar")
    #expect(path.nodeName == "bar")
    #expect(path.parent() == ZDCTreesystemPath(pathComponents: ["foo"]))
    #expect(path.parentPath()?.appendingComponent("bar") == path)
  }

  @Test func aTrunkHasNoParentAndItsOwnName() {
    let trunk = ZDCTreesystemPath(pathComponents: [], trunk: .outbox)
    #expect(trunk.isTrunk)
    #expect(trunk.nodeName == "outbox")
    #expect(trunk.parent() == nil)
    #expect(trunk.fullPath() == "outbox:/")
  }

  @Test(arguments: [
    ("home:/a/b", "home:/a/b"), ("~/a/b", "home:/a/b"), ("/a/b", "home:/a/b"), ("inbox:/x", "inbox:/x"),
    ("~", "home:/"), ("/", "home:/"), ("prefs:", "prefs:/"), ("//a//b/", "home:/a/b"), ("~/a:b", "home:/a:b"),
    ("~/../a", "home:/../a"),
  ])
  func theFormsThatPeopleTypeAreRead(text: String, path: String) {
    #expect(ZDCTreesystemPath(text)?.fullPath() == path)
  }

  @Test(arguments: ["", "a/b", "a", "Home:/a", "nowhere:/a", "home", "home:a", "~a/b", ":/a"])
  func everythingElseIsNoPath(text: String) {
    #expect(ZDCTreesystemPath(text) == nil)
  }

  @Test func anyNameComesBackFromTheTextForm() throws {
    let names = ["a/b", "\\", "\\/", "a\\", "/", " ", "..", "\u{301}x", "é", "e\u{301}", "🧼", "\r\n", "a:b", "~"]
    for first in names {
      for second in names {
        let path = ZDCTreesystemPath(pathComponents: [first, second], trunk: .prefs)
        let read = try #require(ZDCTreesystemPath(path.fullPath()))
        #expect(read.trunk == .prefs)
        #expect(read.pathComponents.map { Array($0.utf8) } == path.pathComponents.map { Array($0.utf8) })
      }
    }
  }

  @Test func aBranchContainsItselfAndWhatIsBelow() {
    let foo = ZDCTreesystemPath(pathComponents: ["foo"])
    #expect(foo.contains(foo))
    #expect(foo.contains(foo.appendingComponent("bar")))
    #expect(!foo.contains(ZDCTreesystemPath(pathComponents: ["food"])))
    #expect(!foo.contains(ZDCTreesystemPath(pathComponents: ["foo"], trunk: .inbox)))
  }

  @Test func aPathIsCodable() throws {
    let path = ZDCTreesystemPath(pathComponents: ["a/b", "c"], trunk: .inbox)
    let copy = try JSONDecoder().decode(ZDCTreesystemPath.self, from: JSONEncoder().encode(path))
    #expect(copy == path)
  }
}
