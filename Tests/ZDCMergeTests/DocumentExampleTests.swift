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

/// The examples of the doc comments, verbatim.
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
  func theseAreTheExamplesOfTheDocComments(file: String) throws {
    let here = URL(fileURLWithPath: #filePath)
    let root = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let source = try String(contentsOf: root.appendingPathComponent("Sources/ZDCMerge/\(file)"), encoding: .utf8)
    let test = Set(try lines(String(contentsOf: here, encoding: .utf8)))
    let blocks = source.components(separatedBy: "/// ```")
    try #require(blocks.count == 3, "one example")
    let example = lines(blocks[1].replacingOccurrences(of: "///", with: "")).filter { $0 != "swift" }
    try #require(example.count >= 7)
    for line in example { #expect(test.contains(line), "\(line)") }
  }

  private func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
  }
}
