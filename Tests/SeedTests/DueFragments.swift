import Foundation
import Testing

/// A fragment that compiles but does not run, because SeedDue.swift only declares the functions that it calls.
struct DueFragment {
  var fragment: String
  var missing: [String]
  var work: Promise.Work

  static let all = [
    DueFragment(
      fragment: "004 data(forMessage:transaction:)",
      missing: ["func graftInvite", "struct ZDCGraftInvite", "struct ZDCCloudPath"], work: .sharing),
    DueFragment(fragment: "004 accepting", missing: ["func graftNode"], work: .sharing),
  ]
}

@Suite struct DueFragmentTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

  /// All five documents compile here, without conditional compilation.
  @Test func noFragmentIsLeftOut() throws {
    let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter { $0.hasPrefix("Seed00") }
    #expect(files.sorted() == (0...4).map { "Seed00\($0).swift" })
    for file in files {
      let text = try String(contentsOf: Self.folder.appendingPathComponent(file), encoding: .utf8)
      #expect(!text.contains("#if"), "\(file)")
    }
  }

  /// => each declaration made only for the compiler is listed; once the framework has it, it must be removed
  @Test func declaredButMissingSymbols_areListed() throws {
    let declared = try String(contentsOf: Self.folder.appendingPathComponent("SeedDue.swift"), encoding: .utf8)
    let framework = try Self.framework()
    for due in DueFragment.all {
      print("due with \(due.work): \(due.fragment): \(due.missing.joined(separator: ", "))")
      for name in due.missing {
        #expect(declared.contains(name), "\(name) is not declared")
        #expect(!framework.contains(name), "\(name) is in the framework: take it out of SeedDue.swift")
      }
    }
    let listed = Set(DueFragment.all.flatMap(\.missing))
    let functions = declared.components(separatedBy: "  func ").dropFirst().map { text in
      "func " + text.prefix { $0.isLetter }
    }
    // `path` is not listed, because it belongs to a listed type.
    #expect(functions.filter { !listed.contains($0) } == ["func path"])
  }

  private static func framework() throws -> String {
    let sources = folder.appendingPathComponent("../../Sources").standardizedFileURL
    guard let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil) else { return "" }
    var all = ""
    for case let file as URL in files where file.pathExtension == "swift" {
      all += try String(contentsOf: file, encoding: .utf8)
    }
    return all
  }
}
