import Foundation
import Testing
import ZDCCommands

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Writing an export")
struct ExportFolderTests {
  private let base: URL
  private let inside: URL

  init() throws {
    base = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-export-\(UUID().uuidString)")
    inside = base.appendingPathComponent("target")
    try FileManager.default.createDirectory(at: inside, withIntermediateDirectories: true)
  }

  private func tidy() { _ = try? FileManager.default.removeItem(at: base) }

  private func files(_ folder: URL) throws -> Set<String> {
    Set(try FileManager.default.subpathsOfDirectory(atPath: folder.path))
  }

  @Test func hostileNames_areAllInside_andNoneReplacesAnother() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    let staging = try StagingFolder(in: root)
    let names = ExportNames.assign(HostileNames.all, foldsCase: try root.foldsCase())
    for (number, name) in names.enumerated() {
      let file = try staging.file(Array("\(number)".utf8))
      #expect(try file.place(in: root, as: name, overwriting: false), "\(name.debugDescription)")
    }
    staging.remove()
    #expect(try files(inside).count == names.count)
    #expect(try files(base).count == names.count + 1)
    for (number, name) in names.enumerated() {
      #expect(try String(contentsOf: inside.appendingPathComponent(name), encoding: .utf8) == "\(number)")
    }
  }

  @Test(arguments: ["", ".", "..", "a/b", "/etc/passwd", "a\u{0}b", String(repeating: "a", count: 256)])
  func aNameThatWasNotMadeSafe_isRefusedAtTheDisk(_ name: String) throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    let error = #expect(throws: CommandError.self) { _ = try root.folder(name) }
    #expect(error?.code == "unsafeExportName")
  }

  @Test func aLinkInTheWay_isNotFollowed() throws {
    defer { tidy() }
    let outside = base.appendingPathComponent("outside")
    try FileManager.default.createDirectory(at: outside, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(at: inside.appendingPathComponent("link"), withDestinationURL: outside)
    let root = try ExportFolder.open(inside.path)
    let error = #expect(throws: CommandError.self) { _ = try root.folder("link") }
    #expect(error?.code == "unsafeExportName")

    let staging = try StagingFolder(in: root)
    #expect(try !staging.file([1]).place(in: root, as: "link", overwriting: false))
    #expect(try staging.file([1]).place(in: root, as: "link", overwriting: true))
    staging.remove()
    #expect(try files(outside).isEmpty)
    #expect(try Data(contentsOf: inside.appendingPathComponent("link")) == Data([1]))
  }

  @Test func aFolderIsNeverReplaced_andAFileOnlyWhenAsked() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    let staging = try StagingFolder(in: root)
    _ = try root.folder("folder")
    #expect(try !staging.file([1]).place(in: root, as: "folder", overwriting: true))
    #expect(try staging.file([1]).place(in: root, as: "file", overwriting: false))
    #expect(try !staging.file([2]).place(in: root, as: "file", overwriting: false))
    #expect(try Data(contentsOf: inside.appendingPathComponent("file")) == Data([1]))
    #expect(try staging.file([2]).place(in: root, as: "file", overwriting: true))
    #expect(try Data(contentsOf: inside.appendingPathComponent("file")) == Data([2]))
    staging.remove()
    #expect(try files(inside) == ["folder", "file"])
  }

  @Test func filesOfAKilledExport_areRemovedByTheNext_andNothingElse() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    let id = "6f7d1c5e-0c1b-4b0e-9a53-1f3c2f6a7b8c"
    let (left, others) = (".zdc-get-\(id)", [".zdc-get-x", "zdc-get-\(id)"])
    for name in [left] + others {
      try FileManager.default.createDirectory(
        at: inside.appendingPathComponent(name), withIntermediateDirectories: true)
      try Data([1]).write(to: inside.appendingPathComponent("\(name)/half"))
    }
    let running = try StagingFolder(in: root)
    let file = try running.file([2])
    #expect(try files(inside).filter { $0.hasPrefix(left) }.isEmpty)
    let next = try StagingFolder(in: root)
    #expect(try file.place(in: root, as: "whole", overwriting: false))
    running.remove()
    next.remove()
    #expect(try files(inside) == Set(others + others.map { "\($0)/half" } + ["whole"]))
    #expect(ExportName.safe(left) != left)
  }

  @Test func theFolderThatWasOpened_isWrittenTo_whateverItsPathNamesLater() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    let moved = base.appendingPathComponent("moved")
    try FileManager.default.moveItem(at: inside, to: moved)
    try FileManager.default.createSymbolicLink(at: inside, withDestinationURL: URL(fileURLWithPath: "/"))
    _ = try root.folder("made")
    #expect(try files(moved) == ["made"])
  }

  @Test func modesAndTimes_areRestored_withoutBorrowedRights() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    let staging = try StagingFolder(in: root)
    let time = FileTime(seconds: 981_173_106, nanoseconds: 789_123_456)
    let file = try staging.file([1])
    try file.restore(FileMetadata(kind: .file, mode: 0o6751, time: time))
    #expect(try file.place(in: root, as: "file", overwriting: false))
    let facts = try #require(try root.facts("file"))
    #expect(facts.mode == 0o751)
    #expect(facts.time == time)
  }

  @Test func readOnlyFolders_areRestoredAfterWhatIsInThem() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    let tree = ExportTree(root: root)
    let time = FileTime(seconds: 1_000_000, nanoseconds: 5)
    tree.remember(FileMetadata(kind: .folder, mode: 0o555, time: time), of: ["a"])
    tree.remember(FileMetadata(kind: .folder, mode: 0o500, time: time), of: ["a", "b"])
    _ = try tree.folder(["a", "b"])
    #expect(tree.restoreFolders().isEmpty)
    #expect(try root.facts("a")?.mode == 0o555)
    #expect(try root.facts("a")?.time == time)
    #expect(try tree.folder(["a"]).facts("b")?.mode == 0o500)
    try root.folder("a").restore(FileMetadata(kind: .folder, mode: 0o755, time: time))
  }

  @Test func aFolderThatCannotBeRestored_doesNotKeepTheOthersFromIt() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    let tree = ExportTree(root: root)
    let metadata = FileMetadata(kind: .folder, mode: 0o750, time: FileTime(seconds: 1, nanoseconds: 0))
    for name in ["a", "b"] { tree.remember(metadata, of: [name]) }
    try Data().write(to: inside.appendingPathComponent("a"))
    #expect(tree.restoreFolders().map(\.place) == [["a"]])
    #expect(try root.facts("b")?.mode == 0o750)
  }

  // MARK: Interrupted exports

  @Test func onlyTheChosenFoldersAreRestored() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    let tree = ExportTree(root: root)
    for (name, mode) in [("open", 0o755), ("shut", 0o555)] as [(String, UInt16)] {
      _ = try tree.folder([name])
      tree.remember(FileMetadata(kind: .folder, mode: mode, time: FileTime(seconds: 1, nanoseconds: 0)), of: [name])
    }
    #expect(tree.restoreFolders { $0.mode & 0o300 == 0o300 }.isEmpty)
    #expect(try root.facts("open")?.mode == 0o755)
    #expect(try root.facts("shut")?.mode == 0o700)
  }

  private func forgotten(_ files: [String]) throws {
    let folder = inside.appendingPathComponent(".zdc-get-6f7d1c5e-0c1b-4b0e-9a53-1f3c2f6a7b8c")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for file in files { try Data([7]).write(to: folder.appendingPathComponent(file)) }
  }

  private func downloads() throws -> Set<String> { try files(inside).filter { $0.hasSuffix(".part") } }

  @Test func unfinishedDownloads_areTakenOver_andRemovedAtTheEnd() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    try forgotten([".zdc-blob.part", "half"])
    let staging = try StagingFolder(in: root)
    let taken = try #require(try downloads().first)
    #expect(try downloads().count == 1 && staging.newPath().path.hasPrefix(inside.path + "/" + taken.prefix(40)))
    staging.remove()
    #expect(try files(inside).isEmpty)
  }

  @Test func unfinishedDownloads_stayForTheNextExport_afterAFailure() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    try forgotten([".zdc-blob.part"])
    for _ in 0..<2 {
      let staging = try StagingFolder(in: root)
      _ = try staging.file([1])
      staging.keepDownloads()
      staging.remove()
    }
    #expect(try downloads().count == 1)
    #expect(try files(inside).count == 2, "the folder and the file")
  }

  @Test func aFileIsTheSame_onlyWithTheSameBytesModeAndTime() throws {
    defer { tidy() }
    let root = try ExportFolder.open(inside.path)
    let staging = try StagingFolder(in: root)
    let metadata = FileMetadata(kind: .file, mode: 0o640, time: FileTime(seconds: 5, nanoseconds: 0))
    let bytes = [UInt8](repeating: 1, count: 300_000)
    func place(_ name: String, _ bytes: [UInt8], _ metadata: FileMetadata) throws {
      let file = try staging.file(bytes)
      try file.restore(metadata)
      #expect(try file.place(in: root, as: name, overwriting: false))
    }
    try place("same", bytes, metadata)
    try place("end", bytes.dropLast() + [2], metadata)
    try place("short", bytes.dropLast(), metadata)
    try place("mode", bytes, FileMetadata(kind: .file, mode: 0o600, time: metadata.time))
    try place("time", bytes, FileMetadata(kind: .file, mode: 0o640, time: FileTime(seconds: 6, nanoseconds: 0)))
    try FileManager.default.createSymbolicLink(
      at: inside.appendingPathComponent("link"), withDestinationURL: inside.appendingPathComponent("same"))
    #expect(mkfifo(inside.appendingPathComponent("pipe").path, 0o600) == 0)
    let file = try staging.file(bytes)
    try file.restore(metadata)
    let names = ["same", "end", "short", "mode", "time", "link", "pipe", "none"]
    #expect(names.filter { file.equals($0, in: root, comparesMetadata: true) } == ["same"])
    #expect(names.filter { file.equals($0, in: root, comparesMetadata: false) } == ["same", "mode", "time"])
  }
}
