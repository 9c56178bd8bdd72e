import Testing
import ZDCProtocol

@testable import ZDCSync

/// The work of replacing the keys of a large zone, a thousand nodes in each commit.
@Suite struct StaleNodesTests {
  /// A zone, and the work that is done to find its stale nodes.
  private final class Zone {
    private let nodes: [NodeID]
    private var stale: Set<NodeID>
    private var list = StaleNodes()
    /// Nodes that no commit can put now.
    var blocked: Set<NodeID> = []
    private(set) var lists = 0
    private(set) var tried = 0

    init(_ count: Int) {
      nodes = (0..<count).map { NodeID(high: 0, low: UInt64($0)) }
      stale = Set(nodes)
    }

    /// Fills a commit with at most a thousand nodes.
    func fill() -> (commit: [NodeID], isSomeStale: Bool) {
      var commit: [NodeID] = []
      let isSomeStale = list.fill(find: find, isEmpty: { commit.isEmpty }) { node in
        guard commit.count < 1_000 else { return false }
        tried += 1
        if stale.contains(node), !blocked.contains(node) { commit.append(node) }
        return true
      }
      return (commit, isSomeStale)
    }

    private func find() -> [NodeID] {
      lists += 1
      return nodes.filter(stale.contains)
    }

    func accept(_ commit: [NodeID]) { stale.subtract(commit) }

    /// Fills and accepts commits until one is empty, and returns their sizes.
    func replaceAll() -> [Int] {
      var sizes: [Int] = []
      while true {
        let commit = fill().commit
        guard !commit.isEmpty else { return sizes }
        accept(commit)
        sizes.append(commit.count)
      }
    }
  }

  @Test func theZoneIsReadTwice_howeverManyCommitsItTakes() {
    for commits in [1, 10, 100] {
      let zone = Zone(commits * 1_000)
      #expect(zone.replaceAll() == [Int](repeating: 1_000, count: commits))
      #expect(zone.lists == 2)
      #expect(zone.tried == commits * 1_000)
    }
  }

  @Test func nodesOfARefusedCommit_areFoundAgain() {
    let zone = Zone(5_000)
    zone.accept(zone.fill().commit)
    let refused = zone.fill().commit
    #expect(refused.count == 1_000)
    #expect(zone.replaceAll() == [1_000, 1_000, 1_000, 1_000])
    #expect(zone.lists == 3)
  }

  @Test func nodesThatCannotBePut_keepNoOthersBack_andAreReported() {
    let zone = Zone(3_500)
    zone.blocked = Set((0..<1_500).map { NodeID(high: 0, low: UInt64($0)) })
    #expect(zone.replaceAll() == [1_000, 1_000])
    #expect(zone.fill() == ([], true))
    zone.blocked = []
    #expect(zone.replaceAll() == [1_000, 500])
    #expect(zone.fill() == ([], false))
  }
}
