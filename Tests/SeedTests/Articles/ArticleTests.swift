import Foundation
import Testing

/// Checks that the documentation's code compiles. The code of an article is in the file of the same name in this
/// folder. The code of the README and of "Getting started" is in `Examples/Minimal`. The tutorial's code is compiled in
/// place, in the catalogue (targets `TutorialStep…`).
@Suite struct ArticleTests {
  private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
  private static let root = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  private static let catalogue = root.appendingPathComponent("Sources/ZeroDarkCloud/Documentation.docc")
  private static let example = root.appendingPathComponent("Examples/Minimal")

  /// The number of examples in each document that has code. It catches examples that are lost or left out by mistake.
  private static let examples = [
    "BackgroundTransfers": 5, "ComingFromZeroDark": 1, "ConflictsAndMerging": 12, "DownloadsAndImages": 12,
    "GettingStarted": 3, "HandlingErrors": 2, "Mapping": 7, "PeopleAndDevices": 4, "ProgressAndExplain": 7, "Pull": 9,
    "Push": 13, "SharingBranches": 5, "TestingYourApp": 12, "Transactions": 1,
  ]

  private static func text(_ file: URL) throws -> String { try String(contentsOf: file, encoding: .utf8) }

  /// Removes spaces and newlines, because lines may break elsewhere than in the document.
  private static func squeezed(_ text: String) -> String {
    String(decoding: text.utf8.filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }

  private static func blocks(_ document: URL) throws -> [String] {
    try text(document).components(separatedBy: "```swift\n").dropFirst().map { block in
      block.components(separatedBy: "```")[0]
    }
  }

  private static func articles() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: catalogue.path).filter { $0.hasSuffix(".md") }
      .map { String($0.dropLast(3)) }.sorted()
  }

  /// The path to the repository: from the example, and for a newcomer who has cloned it beside their own folder.
  private static let (exampleWay, newcomersWay) = ("\"../..\"", "\"../zerodark\"")

  /// Returns the concatenation of the example's files.
  private static func exampleCode() throws -> String {
    try ["Package.swift", "Sources/Minimal/main.swift", "Sources/Minimal/Notes.swift"]
      .map { try text(example.appendingPathComponent($0)) }.joined()
      .replacingOccurrences(of: exampleWay, with: newcomersWay)
  }

  @Test func everyExampleOfAnArticleIsCompiled() throws {
    var found: [String: Int] = [:]
    for article in try Self.articles() {
      let blocks = try Self.blocks(Self.catalogue.appendingPathComponent("\(article).md"))
      if !blocks.isEmpty { found[article] = blocks.count }
      let file = Self.here.appendingPathComponent("\(article).swift")
      let compiled = Self.squeezed(
        FileManager.default.fileExists(atPath: file.path) ? try Self.text(file) : try Self.exampleCode())
      for block in blocks { #expect(compiled.contains(Self.squeezed(block)), "\(article): \(block)") }
    }
    #expect(found == Self.examples)
  }

  /// => people who come from the original find each of its names that exists here, and that records are no classes
  @Test("X2: the article about the original has every name that was kept for it")
  func theArticleAboutTheOriginalHasEveryName() throws {
    let article = try Self.text(Self.catalogue.appendingPathComponent("ComingFromZeroDark.md"))
    var count = 0
    for file in [
      "ZDCMerge/Compatibility/OriginalNames.swift", "ZeroDarkCloud/Compatibility/OriginalManagers.swift",
      "ZeroDarkCloud/Compatibility/OriginalTransactions.swift",
    ] {
      let source = try Self.text(Self.root.appendingPathComponent("Sources/\(file)"))
      for match in source.matches(of: /public (?:\w+ )*(?:func|var|let) (\w+)/) {
        count += 1
        #expect(article.contains(match.output.1), "\(match.output.1)")
      }
    }
    #expect(count > 20, "nothing was read")
    #expect(article.contains("A class that conforms to ``ZDCRecord`` does not compile."))
  }

  @Test func everyFileOfTheTutorialIsATarget() throws {
    let manifest = try Self.text(Self.root.appendingPathComponent("Package.swift"))
    let tutorial = try Self.text(Self.catalogue.appendingPathComponent("Tutorials/NotesOnTwoDevices.tutorial"))
    let shown = tutorial.matches(of: /file: "(Notes-\d\d\.swift)"/).map { String($0.output.1) }
    let resources = Self.catalogue.appendingPathComponent("Resources").path
    let there = try FileManager.default.contentsOfDirectory(atPath: resources).filter { $0.hasSuffix(".swift") }
      .sorted()
    #expect(shown == there)
    #expect(shown == (1...11).map { "Notes-\($0 < 10 ? "0" : "")\($0).swift" })
    #expect(manifest.contains("let tutorialSteps = 1...11\n"))
  }

  @Test func theLandingPageHasEveryArticle() throws {
    let page = try Self.text(Self.catalogue.appendingPathComponent("ZeroDarkCloud.md"))
    for article in try Self.articles() where article != "ZeroDarkCloud" {
      #expect(page.contains("- <doc:\(article)>"), "\(article)")
    }
  }

  /// Every type has its place on the landing page, so that readers need not search for it.
  @Test func theLandingPageHasEveryPublicType() throws {
    let page = try Self.text(Self.catalogue.appendingPathComponent("ZeroDarkCloud.md"))
    var count = 0
    let modules = [
      "ZeroDarkCloud", "ZDCMerge", "ZDCTreesystem", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", "ZDCAccounts",
      "ZDCTransfers", "ZDCSync",
    ]
    for module in modules {
      let folder = Self.root.appendingPathComponent("Sources/\(module)")
      for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path)
      where path.hasSuffix(".swift") && !path.contains(".docc/") {
        let source = try Self.text(folder.appendingPathComponent(path))
        let pattern = /^(?:@\w+ )*public (?:final )?(?:class|struct|enum|protocol|typealias) (\w+)/
        for match in source.matches(of: pattern.anchorsMatchLineEndings()) {
          count += 1
          #expect(page.contains("- ``\(match.output.1)``\n"), "\(match.output.1)")
        }
      }
    }
    #expect(count > 90, "nothing was read")
  }

  /// A newcomer copies these blocks. They are the example that `make test` builds and runs, file by file.
  @Test func theReadmeIsTheExample() throws {
    let blocks = try Self.blocks(Self.root.appendingPathComponent("README.md"))
    for file in ["Sources/Minimal/main.swift", "Sources/Minimal/Notes.swift"] {
      #expect(blocks.contains(try Self.text(Self.example.appendingPathComponent(file))), "\(file)")
    }
    let program = try Self.text(Self.example.appendingPathComponent("Sources/Minimal/main.swift"))
    #expect(program.split(separator: "\n").count <= 28)
    let manifest = try Self.text(Self.example.appendingPathComponent("Package.swift"))
    #expect(blocks.contains(manifest.replacingOccurrences(of: Self.exampleWay, with: Self.newcomersWay)))
    let first = try #require(blocks.first)
    let compiled = Self.squeezed(try Self.text(Self.here.appendingPathComponent("Readme.swift")))
    #expect(compiled.contains(Self.squeezed(first)))
    #expect(blocks.count == 4)
  }
}
