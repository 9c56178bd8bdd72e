import Testing
import ZDCCommands

@Suite("Watching the trees from beside the engine")
struct SeenTreeTests {
  private typealias Node = SeenTree.Node

  private static func node(_ path: String, record: String? = "r1", data: String? = "d1") -> Node {
    Node(path: path, cloudID: "id", size: 1, record: record, data: data)
  }

  /// Returns the events of each step, as text.
  private static func events(_ steps: [(nodes: [String: Node], queued: Set<String>)]) -> [[String]] {
    var tree = SeenTree(.init(nodes: steps[0].nodes, queued: steps[0].queued))
    return steps.dropFirst().map { step in
      tree.update(.init(nodes: step.nodes, queued: step.queued), at: 0).map(\.text)
    }
  }

  @Test func changesOfOtherDevices_areReported() {
    let events = Self.events([
      (["n": Self.node("home:/n"), "m": Self.node("home:/m"), "k": Self.node("home:/k")], []),
      (
        [
          "n": Self.node("home:/n", record: "r2", data: "d2"), "m": Self.node("home:/x", record: "r2"),
          "k": Self.node("home:/k", record: "r2"), "o": Self.node("home:/o"),
        ], []
      ),
      (["n": Self.node("home:/n", record: "r2", data: "d2")], []),
    ])
    #expect(
      events[0] == ["changed   home:/k", "modified  home:/n", "new       home:/o", "moved     home:/m -> home:/x"])
    #expect(events[1] == ["deleted   home:/k", "deleted   home:/o", "deleted   home:/x"])
  }

  /// Only the folder's record changes when a folder is moved.
  @Test func aMovedFolder_isOneEvent() {
    let before = ["d": Self.node("home:/d"), "f": Self.node("home:/d/f")]
    let after = ["d": Self.node("home:/e", record: "r2"), "f": Self.node("home:/e/f")]
    let changed = ["d": after["d"]!, "f": Self.node("home:/e/f", record: "r2", data: "d2")]
    let events = Self.events([(before, []), (after, []), (changed, [])])
    #expect(events == [["moved     home:/d -> home:/e"], ["modified  home:/e/f"]])
  }

  @Test func ownChanges_areNotReported_whileTheyAreQueuedOrOnceTheyAreSent() {
    let before = ["n": Self.node("home:/n"), "gone": Self.node("home:/gone")]
    let queued = ["n": Self.node("home:/mine"), "new": Self.node("home:/new", record: nil, data: nil)]
    let sent = ["n": Self.node("home:/mine", record: "r2"), "new": Self.node("home:/new")]
    let events = Self.events([(before, []), (queued, ["n", "new", "gone"]), (sent, []), (sent, [])])
    #expect(events == [[], [], []])
  }

  @Test func anotherDevicesChange_isReportedOfANodeThatThisDeviceHasSent() {
    let sent = ["n": Self.node("home:/n")]
    let events = Self.events([(sent, ["n"]), (sent, []), (["n": Self.node("home:/n", record: "r2", data: "d2")], [])])
    #expect(events == [[], ["modified  home:/n"]])
  }
}
