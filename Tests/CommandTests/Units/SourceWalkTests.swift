import Foundation
import Testing
import ZDCCommands

@Suite("Walking the files to put")
struct SourceWalkTests {
  private let source: URL

  init() throws {
    source = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-walk-\(UUID().uuidString)")
    for path in ["b/2", "b/c/3", "d"] { try make(path.hasSuffix("d") ? path + "/" : path) }
    try make("a")
    try make("e")
  }

  private func make(_ path: String) throws {
    let url = source.appendingPathComponent(path)
    let folder = path.hasSuffix("/") ? url : url.deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    if !path.hasSuffix("/") { try Data(path.utf8).write(to: url) }
  }

  private func tidy() { _ = try? FileManager.default.removeItem(at: source) }

  private static func all(_ walk: inout SourceWalk, batch: Int) throws -> [String] {
    var names: [String] = []
    while case let entries = try walk.next(batch), !entries.isEmpty {
      #expect(entries.count <= batch)
      names += entries.map { $0.names.joined(separator: "/") }
    }
    return names
  }

  @Test(arguments: [1, 3, 1_000])
  func parentsComeBeforeChildren_inTheOrderOfNames_whateverTheBatch(batch: Int) throws {
    defer { tidy() }
    var walk = try SourceWalk(source.path)
    #expect(try walk.count() == 8)
    #expect(try Self.all(&walk, batch: batch) == ["", "a", "b", "b/2", "b/c", "b/c/3", "d", "e"])
    #expect(try walk.count() == 0)
    #expect(walk.skipped == [])
  }

  @Test func aLinkIsSkippedByRule_andFilesThatAreGoneAreNot() throws {
    defer { tidy() }
    let link = source.appendingPathComponent("b/link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: source.appendingPathComponent("a"))
    var walk = try SourceWalk(source.path)
    #expect(try walk.next(2).map(\.names) == [[], ["a"]])
    try FileManager.default.removeItem(at: source.appendingPathComponent("e"))
    #expect(try Self.all(&walk, batch: 2) == ["b", "b/2", "b/c", "b/c/3", "d"])
    #expect(walk.skipped.map(\.path) == [link.path])
    #expect(walk.skipped.map(\.isByRule) == [true])
  }

  @Test func whatAnInterruptedGetHasLeft_isSkippedByRule() throws {
    defer { tidy() }
    let left = ".zdc-get-6f7d1c5e-0c1b-4b0e-9a53-1f3c2f6a7b8c"
    for path in [left + "/.zdc-blob.part", "b/" + left + "/.zdc-blob.part", ".zdc-get-x/1"] { try make(path) }
    var walk = try SourceWalk(source.path)
    #expect(
      try Self.all(&walk, batch: 3) == ["", ".zdc-get-x", ".zdc-get-x/1", "a", "b", "b/2", "b/c", "b/c/3", "d", "e"])
    #expect(walk.skipped.map(\.reason) == [SourceWalk.unfinished, SourceWalk.unfinished])
    #expect(walk.skipped.allSatisfy { $0.isByRule })
  }

  @Test func theOwnFolder_isSkipped_andRefusedAsTheSource() throws {
    defer { tidy() }
    let own = source.path + "/b"
    var walk = try SourceWalk(source.path, skipping: own)
    #expect(try Self.all(&walk, batch: 10) == ["", "a", "d", "e"])
    #expect(walk.skipped.map(\.reason) == [SourceWalk.ownFolder])
    let link = source.path + "/link"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: own)
    for path in [own, own + "/", own + "/c", own + "/2", link, link + "/c/3", source.path + "/d/../b"] {
      #expect(throws: CommandError.self, "\(path)") { try SourceWalk(path, skipping: own) }
    }
    #expect(throws: Never.self) { try SourceWalk(source.path + "/d", skipping: own) }
  }

  @Test func aFileIsOneEntry_andWhatIsNotThereIsAnError() throws {
    defer { tidy() }
    var walk = try SourceWalk(source.path + "/a")
    #expect(try walk.next(10).map(\.path) == [source.path + "/a"])
    #expect(throws: CommandError.self) { try SourceWalk(source.path + "/none") }
  }
}
