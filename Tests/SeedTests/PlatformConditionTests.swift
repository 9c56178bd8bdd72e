import Foundation
import Testing

struct PlatformConditionTests {
  @Test("X4: a module of an app's own that is named UIKit or AppKit changes nothing on other systems")
  func imageModulesAreAskedForWithTheirSystem() throws {
    let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Sources")
    let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
    var conditions: [String] = []
    for case let file as URL in files where file.pathExtension == "swift" {
      let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
      conditions += lines.filter { $0.contains("canImport(UIKit)") || $0.contains("canImport(AppKit)") }.map(
        String.init)
    }
    #expect(!conditions.isEmpty)
    #expect(conditions.filter { !$0.contains("os(") } == [])
  }
}
