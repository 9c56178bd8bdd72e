import Foundation
import Testing

@Suite struct FragmentTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

  /// All five documents compile here, without conditional compilation.
  @Test func noFragmentIsLeftOut() throws {
    let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
      .filter { $0.wholeMatch(of: /Seed00\d\.swift/) != nil }
    #expect(files.sorted() == (0...4).map { "Seed00\($0).swift" })
    for file in files {
      let text = try String(contentsOf: Self.folder.appendingPathComponent(file), encoding: .utf8)
      #expect(!text.contains("#if"), "\(file)")
    }
  }
}
