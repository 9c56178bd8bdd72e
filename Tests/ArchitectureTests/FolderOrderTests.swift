import Testing

@Suite struct FolderOrderTests {
  private func file(_ folder: String, _ text: String) -> FolderOrder.SourceFile {
    FolderOrder.SourceFile(target: "ZDCProtocol", folder: folder, name: "File.swift", text: text)
  }

  @Test func noFolderUsesOneAboveIt() throws {
    let files = try FolderOrder.ofRepository()
    #expect(Set(files.map(\.target)).isSuperset(of: FolderOrder.byTarget.keys), "nothing was read")
    #expect(FolderOrder.findings(files) == [])
  }

  @Test(arguments: [
    "let a: Upper?", "  func b(_ upper: [Upper]) {}", "extension Upper {}", "typealias C = Upper.Part",
    "let text = \"x\"; let upper = Upper()",
  ])
  func aUseOfAFolderAbove_isFound(text: String) {
    let files = [file("Wire", "public struct Upper {}"), file("Objects", text)]
    #expect(FolderOrder.findings(files).count == 1)
  }

  @Test(arguments: ["// Upper", "let text = \"Upper\"", "let upper = 1", "let a: Uppermost"])
  func falseMatches_areIgnored(text: String) {
    let files = [file("Wire", "public struct Upper {}"), file("Objects", text)]
    #expect(FolderOrder.findings(files) == [])
  }

  @Test func folderWithoutAPlace_isFound() {
    #expect(FolderOrder.findings([file("New", "struct A {}")]).count == 1)
    let stranger = FolderOrder.SourceFile(target: "NewTarget", folder: "A", name: "File.swift", text: "")
    var top = stranger
    top.folder = ""
    #expect(FolderOrder.findings([stranger, top]).count == 1)
  }

  @Test func everyKindOfTypeIsRead() {
    let text = """
      public final class A {}
      package actor B {
        struct Inner {}
      }
      @MainActor struct C<T> {}
      private struct Hidden {}
      indirect enum D: Sendable {}
      protocol E {}
      """
    #expect(FolderOrder.types(in: text) == ["A", "B", "C", "D", "E"])
  }
}
