import Testing
import ZDCCrypto
import ZDCProtocol
import ZDCTreesystem

@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// The requests that a hand-over makes of a download.
struct HandOverPlanTests {
  private static let range = ZDCDownloadManager.rangeBytes

  private static func target(data: UInt64, metadata: Int = 700, thumbnail: Int = 200_000) throws -> ContentTarget {
    let sealer = try ContentSealer(
      metadata: [UInt8](repeating: 1, count: metadata), thumbnail: [UInt8](repeating: 2, count: thumbnail),
      dataSize: data)
    let content = NodeRecord.Content(
      dataVersion: 1, blobID: sealer.blobID, cipherLength: sealer.cipherLength, contentRoot: .zero)
    return ContentTarget(
      user: .zero, zone: ZoneID(tree: .zero, root: .zero), node: .random(),
      reference: try ContentReference(content: content, secrets: sealer.secrets), receivedMs: 0)
  }

  /// The ranges of large data continue this process's bytes, and cover the rest without a gap or an overlap.
  @Test(arguments: [0, 1, 70 << 20, 199 << 20] as [UInt64])
  func largeData_isRequestedInRanges(begin: UInt64) throws {
    let target = try Self.target(data: 200 << 20)
    let plan = HandOverPlan(target, .data)
    let ranges = plan.ranges(from: begin, without: [])
    #expect(plan.isResumable && plan.proof == nil)
    #expect(ranges.first?.lowerBound == begin && ranges.last?.upperBound == target.cipherLength)
    #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
    #expect(ranges.allSatisfy { UInt64($0.count) <= Self.range })
    #expect(plan.ranges(from: target.cipherLength, without: []) == [])
  }

  @Test func rangesThatHaveArrived_areNotRequestedAgain() throws {
    let plan = HandOverPlan(try Self.target(data: 200 << 20), .data)
    let all = plan.ranges(from: 0, without: [])
    #expect(plan.ranges(from: 0, without: [all[1]]) == [all[0]] + all[2...])
    #expect(plan.ranges(from: 0, without: all) == [])
    // A part of a range is not enough.
    #expect(plan.ranges(from: 0, without: [all[1].lowerBound..<all[1].upperBound - 1]) == all)
  }

  @Test(arguments: [10, 1 << 20, 8_000_000] as [UInt64]) func otherData_isRequestedWhole(size: UInt64) throws {
    let target = try Self.target(data: size)
    let plan = HandOverPlan(target, .data)
    #expect(!plan.isResumable && plan.proof == nil)
    #expect(plan.ranges(from: 0, without: []) == [0..<target.cipherLength])
  }

  @Test func sections_areRequestedWithTheirProof() throws {
    let target = try Self.target(data: 200 << 20)
    let plan = HandOverPlan(target, .meta(.thumbnail))
    #expect(plan.proof == 0..<4)
    let bytes = plan.ranges(from: 0, without: []).reduce(0) { $0 + $1.count }
    #expect((200_000..<300_000).contains(bytes))
    // Small content is one request, and the header needs none.
    let small = try Self.target(data: 10, thumbnail: 100)
    #expect(HandOverPlan(small, .meta(.all)).ranges(from: 0, without: []) == [0..<small.cipherLength])
    #expect(HandOverPlan(small, .meta(.all)).proof == nil)
    #expect(HandOverPlan(small, .meta(.header)).ranges(from: 0, without: []) == [])
    #expect(HandOverPlan(target, .meta(.header)).ranges(from: 0, without: []) == [])
  }
}
