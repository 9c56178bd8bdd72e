import Foundation
import Testing
import ZDCCommands

@Suite("Places of an export")
struct ExportPlanTests {
  private static func plan(
    _ top: ExportPlan.Source = .init(uuid: "user|tree|home", name: ""), at place: [String] = []
  ) -> ExportPlan {
    ExportPlan(top, at: place, policy: .native, foldsCase: true)
  }

  private static func node(_ name: String, size: UInt64 = 0) -> ExportPlan.Source {
    .init(uuid: UUID().uuidString, name: name, dataSize: size, hasContent: true)
  }

  @Test func namesThatMeetInAFolderAreNumbered_andNamed() {
    var plan = Self.plan()
    let children = [Self.node("README", size: 1), Self.node("readme", size: 2)]
    let names = plan.names(of: children, in: 0)
    #expect(names == ["README", "readme~2"])
    let indices = zip(children, names).map { plan.add($0, as: $1, in: 0) }
    #expect(indices.map { plan.place($0) } == [["README"], ["readme~2"]])
    #expect(plan.renamed.map(\.from) == ["readme"])
    #expect(plan.renamed.map(\.to) == [["readme~2"]])
    #expect(indices.map { plan.uuid($0) } == children.map(\.uuid))
    #expect(plan.contentCount == 2 && plan.dataBytes == 3)
  }

  @Test func dataOfAFolderGoesIntoAFileInsideIt() {
    var plan = Self.plan(Self.node("album", size: 5), at: ["out", "album"])
    let children = [Self.node("_content", size: 1), Self.node("photo")]
    let names = plan.names(of: children, in: 0)
    let indices = zip(children, names).map { plan.add($0, as: $1, in: 0) }
    #expect(plan.isFolder(0) && !plan.isFolder(indices[1]))
    #expect(plan.place(0) == ["out", "album"])
    let data = indices.map { plan.dataPlace($0) } + [plan.dataPlace(0)]
    #expect(Set(data).count == 3)
    #expect(data.allSatisfy { $0.count == 3 && $0.starts(with: ["out", "album"]) })
  }

  @Test func aUuidOfAnotherFormIsKept() {
    let lower = UUID().uuidString.lowercased()
    var plan = Self.plan()
    let child = ExportPlan.Source(uuid: lower, name: "a")
    let index = plan.add(child, as: plan.names(of: [child], in: 0)[0], in: 0)
    #expect(plan.uuid(index) == lower)
    #expect(plan.uuid(0) == "user|tree|home")
  }
}
