import Foundation
import Synchronization
import Testing
import ZDCCommands
import ZeroDarkCloud

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Names chosen by an attacker, from a tree on a server through the real program onto a disk.
@Suite("Exporting hostile names")
struct HostileExportTests {
  @Test("every name comes out, none outside the folder", arguments: [false, true])
  func everyName(isPortable: Bool) async throws {
    try await Self.withWorld { world in
      let names = try await Self.plant(world)
      #expect(names.count >= 200)
      let (_, target) = try Self.places(world)
      let get = ["get", "home:/", target.path, "--json"] + (isPortable ? ["--portable-names"] : [])
      let before = try Set(FileManager.default.subpathsOfDirectory(atPath: world.folder.path))
      let outcome = try await world.zdc("reader", get)
      try #require(outcome.status == 0, "\(outcome.errors)")

      let after = try Set(FileManager.default.subpathsOfDirectory(atPath: world.folder.path))
      let own = ["outside/target", "reader/", "server"]
      let strays = after.subtracting(before).filter { path in !own.contains { path.utf8.starts(with: $0.utf8) } }
      #expect(strays.isEmpty, "\(strays.map(\.debugDescription))")
      let written = try FileManager.default.contentsOfDirectory(atPath: target.path)
      #expect(written.count == names.count)
      let contents = try written.map { try String(contentsOf: target.appendingPathComponent($0), encoding: .utf8) }
      #expect(Set(contents) == Set(names.indices.map { "\($0)" }))
    }
  }

  /// An attacker with access to the target folder swaps folders for links while the export writes.
  @Test func linksThatAppearWhileItWrites_leadNowhere() async throws {
    try await Self.withWorld { world in
      let source = world.folder.appendingPathComponent("d")
      for number in 0..<60 {
        let folder = source.appendingPathComponent("\(number % 3)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("\(number)".utf8).write(to: folder.appendingPathComponent("f\(number)"))
      }
      try await world.mustRun("author", "put", source.path, "home:/")
      let (outside, target) = try Self.places(world)
      let trap = outside.appendingPathComponent("trap")
      try FileManager.default.createDirectory(at: trap, withIntermediateDirectories: true)
      let swapper = Swapper(target.appendingPathComponent("d/1").path, trap: trap.path)
      for _ in 0..<4 {
        let status = try await world.zdc("reader", ["get", "home:/d", target.path + "/", "--overwrite"]).status
        // Succeeded, or refused where it found the link.
        #expect([0, 1, 66, 73].contains(status))
      }
      let swaps = swapper.end()
      #expect(swaps > 0)
      #expect(try FileManager.default.contentsOfDirectory(atPath: trap.path).isEmpty)
    }
  }

  // MARK: The world

  private static func withWorld(_ body: (ProgramWorld) async throws -> Void) async throws {
    let world = try await ProgramWorld()
    do {
      let words = world.folder.appendingPathComponent("words").path
      try await world.mustRun("author", "account", "create", "--server", world.url, "--words-file", words)
      try await world.mustRun("reader", "account", "login", "--server", world.url, "--words-file", words)
      try await body(world)
    } catch {
      await world.end()
      throw error
    }
    await world.end()
  }

  private static func places(_ world: ProgramWorld) throws -> (outside: URL, target: URL) {
    let outside = world.folder.appendingPathComponent("outside")
    let target = outside.appendingPathComponent("target")
    try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
    return (outside, target)
  }

  /// Queues nodes with names that no file and no argument could carry, and pushes them. They are inserted below the
  /// level of `zdc`, which sends them.
  private static func plant(_ world: ProgramWorld) async throws -> [String] {
    let options = ProfileOptions(
      name: "default", server: nil, caFile: nil, passphraseFile: nil, isVerbose: false,
      output: Output(isJSON: false, isQuiet: true), environment: world.environment("author"))
    let source = world.folder.appendingPathComponent("contents")
    try FileManager.default.createDirectory(at: source, withIntermediateDirectories: true)
    let opened = try OpenProfile.open(options)
    let user = try #require(try await opened.zdc.localUserManager?.allLocalUserIDs().first)
    let connection = try #require(opened.zdc.databaseManager?.rwDatabaseConnection)
    let names = try await connection.write { transaction in
      let cloud = try #require(opened.zdc.cloudTransaction(transaction, forLocalUserID: user))
      let home = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: [])))
      var names: [String] = []
      for name in HostileNames.all {
        var node = ZDCNode(localUserID: user)
        (node.parentID, node.name) = (home.uuid, name)
        // The tree itself refuses some names and treats others as equal; those never get this far.
        guard let node = try? cloud.insertNode(node) else { continue }
        let file = source.appendingPathComponent("\(names.count)")
        try Data("\(names.count)".utf8).write(to: file)
        let facts = try #require(try FileAttributes.of(file.path))
        let record = FileRecord(try #require(facts.metadata), size: facts.size, source: file.path)
        transaction.setObject(record, forKey: node.uuid, inCollection: FileRecord.collection)
        try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: FileRecord.collection)
        names.append(name)
      }
      return names
    }
    try await opened.close()
    try await world.mustRun("author", "sync")
    return names
  }
}

/// Swaps a folder for a link and back, as fast as it can.
private final class Swapper: Sendable {
  private let state = Mutex((isOver: false, swaps: 0))
  private let ended = DispatchSemaphore(value: 0)

  init(_ folder: String, trap: String) {
    Thread.detachNewThread { [self] in
      let aside = folder + ".aside"
      while !state.withLock({ $0.isOver }) {
        guard rename(folder, aside) == 0 else { continue }
        symlink(trap, folder)
        state.withLock { $0.swaps += 1 }
        unlink(folder)
        rename(aside, folder)
      }
      ended.signal()
    }
  }

  func end() -> Int {
    state.withLock { $0.isOver = true }
    ended.wait()
    return state.withLock { $0.swaps }
  }
}
