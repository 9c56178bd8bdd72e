import Foundation
import Testing
import ZDCMerge

struct Task: ZDCRecord, Codable, Equatable {
  @Syncable var title: String
  @Syncable var completed = false
  var labels: ZDCSet<String> = []

  static var syncableFields: [ZDCField<Task>] {
    [ZDCField("title", \._title), ZDCField("completed", \._completed), ZDCField("labels", \.labels)]
  }
}

/// The examples that show how the parts fit together, verbatim. `make snippets` compiles all others.
@Suite struct DocumentExampleTests {
  @Test func merge() throws {
    var task = Task(title: "Buy milk")
    task.title = "Buy oat milk"
    let changeset = try task.changeset()  // goes with queueDataUpload(forNodeID:withChangeset:)

    var cloudVersion = Task(title: "Buy milk")  // the concurrent change of another device
    cloudVersion.completed = true

    try task.merge(cloudVersion: cloudVersion, pendingChangesets: [changeset].compactMap(\.self))
    // task.title == "Buy oat milk", task.completed == true
    #expect(task.title == "Buy oat milk" && task.completed)
    #expect(Task.unlistedFields(of: task) == [])
  }

  @Test(arguments: ["ZDCRecord.swift", "ZDCSyncable.swift"])
  func theLongestExamplesOfTheDocCommentsAreHere(file: String) throws {
    let here = URL(fileURLWithPath: #filePath)
    let root = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let source = try String(contentsOf: root.appendingPathComponent("Sources/ZDCMerge/\(file)"), encoding: .utf8)
    let test = Set(try lines(String(contentsOf: here, encoding: .utf8)))
    let blocks = source.components(separatedBy: "/// ```")
    let examples = stride(from: 1, to: blocks.count, by: 2).map { index in
      lines(blocks[index].replacingOccurrences(of: "///", with: "")).filter { $0 != "swift" }
    }
    #expect(examples.contains { $0.count >= 7 && $0.allSatisfy(test.contains) }, "\(examples)")
  }

  private func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
  }
}
