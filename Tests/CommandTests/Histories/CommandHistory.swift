import Foundation
import Testing

/// Two profiles of one account take turns with a few commands each; a fresh profile checks the result.
///
/// The commands run one after the other, so the tree is known exactly. A turn is a burst: its commands become one
/// commit each, or one together, and the other profile pulls them all together. Any of them may be killed.
struct CommandHistory {
  private let world: ProgramWorld
  private var dice: Dice
  private var model = FileTreeModel()
  private var log: [String] = []
  private var sources = 0

  private static let devices = ["a", "b"]
  private static let top = "home:/h"

  init(_ world: ProgramWorld, seed: UInt64) {
    self.world = world
    dice = Dice(seed: seed)
  }

  mutating func run(turns: Int) async throws {
    do {
      try await begin()
      for turn in 0..<turns {
        try await self.turn(Self.devices[dice.number(0...1)])
        if turn % 4 == 3 { try await expectTree(Self.devices[dice.number(0...1)]) }
      }
      for device in Self.devices { try await expectTree(device) }
      try await login("fresh")
      try await expectTree("fresh")
    } catch { throw HistoryFailure(description: "\(error)\n\(log.joined(separator: "\n"))") }
  }

  private func login(_ device: String) async throws {
    let words = world.folder.appendingPathComponent("words").path
    try await world.mustRun(device, "account", "login", "--server", world.url, "--words-file", words)
  }

  /// Gives both profiles folders in three levels, with files in them.
  private mutating func begin() async throws {
    let words = world.folder.appendingPathComponent("words").path
    try await world.mustRun("a", "account", "create", "--server", world.url, "--words-file", words)
    try await login("b")
    let source = world.folder.appendingPathComponent("start")
    for path in ["x/y/z", "y"] {
      let folder = source.appendingPathComponent(path)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try newBytes().write(to: folder.appendingPathComponent("f"))
    }
    model = try FileTreeModel(readingFrom: source)
    try await world.mustRun("a", "put", source.path, Self.top)
    try await world.mustRun("b", "sync")
  }

  // MARK: One step

  private mutating func turn(_ device: String) async throws {
    let isQueued = dice.number(0...2) == 0
    if isQueued { try await settle(device) }
    for _ in 0..<dice.number(1...4) { try await command(device, isQueued ? ["--queue"] : []) }
    if isQueued { try await settle(device) }
  }

  private mutating func command(_ device: String, _ options: [String]) async throws {
    switch dice.number(0...9) {
    case 0...1: try await putFile(device, place(), options)
    case 2...3: try await putFolder(device, place(), options)
    case 4...6: try await move(device, options)
    case 7: try await replace(device, options)
    default: try await remove(device, options)
    }
  }

  private mutating func settle(_ device: String) async throws {
    let outcome = try await zdc(device, ["sync"])
    if outcome.hasStruck { try await must(device, ["sync"]) }
  }

  private mutating func place() -> String {
    let folders = [""] + model.paths.filter(model.isFolder)
    let folder = folders[dice.number(0...folders.count - 1)]
    let name = ["x", "y", "z", "f"][dice.number(0...3)]
    return folder.isEmpty ? name : "\(folder)/\(name)"
  }

  private mutating func anyPath() -> String? { model.paths.randomElement(using: &dice) }

  // MARK: Commands

  private mutating func putFile(_ device: String, _ path: String, _ options: [String]) async throws {
    let bytes = newBytes()
    let source = newSource()
    try bytes.write(to: source)
    try await put(device, source, path, options, wanted: model.putFile(path, bytes))
  }

  private mutating func putFolder(_ device: String, _ path: String, _ options: [String]) async throws {
    let source = newSource()
    let inner = source.appendingPathComponent("in")
    try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
    let isEmpty = dice.number(0...1) == 0
    let bytes = newBytes()
    if !isEmpty { try bytes.write(to: inner.appendingPathComponent("g")) }
    let wanted = model.putFolder(path, folders: ["in"], files: isEmpty ? [:] : ["in/g": bytes])
    try await put(device, source, path, options, wanted: wanted)
  }

  /// Replaces a node of the same kind; a node of the other kind must stay unchanged.
  private mutating func put(
    _ device: String, _ source: URL, _ path: String, _ options: [String], wanted: FileTreeModel.Put
  ) async throws {
    let overwrites = wanted == .refused ? [] : ["--overwrite"]
    let arguments = ["put"] + options + overwrites + [source.path, "\(Self.top)/\(path)"]
    var outcome = try await zdc(device, arguments)
    if outcome.hasStruck {
      if wanted == .refused { return }
      outcome = try await again(device, arguments)
    }
    if wanted == .whole {
      try #require(outcome.status == 0, "\(outcome.errors)")
    } else {
      try #require(outcome.status != 0, "a put over the other kind must not succeed")
    }
  }

  private mutating func move(_ device: String, _ options: [String]) async throws {
    guard let path = anyPath() else { return }
    let new = place()
    guard model.move(path, to: new) else { return }
    try await change(device, ["mv"] + options + ["\(Self.top)/\(path)", "\(Self.top)/\(new)"], of: path)
  }

  private mutating func remove(_ device: String, _ options: [String]) async throws {
    guard let path = anyPath() else { return }
    model.remove(path)
    try await change(device, ["rm", "--recursive"] + options + ["\(Self.top)/\(path)"], of: path)
  }

  /// Replaces a folder with a file, or a file with a folder.
  private mutating func replace(_ device: String, _ options: [String]) async throws {
    guard let path = anyPath() else { return }
    let wasFolder = model.isFolder(path)
    model.remove(path)
    try await change(device, ["rm", "--recursive"] + options + ["\(Self.top)/\(path)"], of: path)
    if wasFolder {
      try await putFile(device, path, options)
    } else {
      try await putFolder(device, path, options)
    }
  }

  /// Repeats a killed command if it had not been queued. The device's own tree shows that only after a sync: the
  /// command may have been killed during its pull.
  private mutating func change(_ device: String, _ arguments: [String], of path: String) async throws {
    let outcome = try await zdc(device, arguments)
    if outcome.status == 75 { return try await must(device, arguments) }
    guard outcome.hasStruck else { return }
    try await must(device, ["sync"])
    let isThere = try await world.zdc(device, ["ls", "\(Self.top)/\(path)"]).status == 0
    if isThere { try await must(device, arguments) }
  }

  // MARK: Running

  /// Kills every fourth command at some byte to the server, if it sends that much.
  private mutating func zdc(_ device: String, _ arguments: [String]) async throws -> ProgramWorld.Outcome {
    let moment: Moment? = dice.number(0...3) == 0 ? .up(dice.number(1...2_500)) : nil
    let outcome = try await world.zdc(device, arguments, killing: moment == nil ? nil : .client, at: moment)
    log.append(
      "\(device) zdc \(arguments.joined(separator: " ")): \(outcome.hasStruck ? "killed" : "\(outcome.status)")")
    // 75: another device changed the node at this path, and nothing was done (M13).
    if !outcome.hasStruck, arguments[0] != "put", outcome.status != 75 {
      try #require(outcome.status == 0, "\(outcome.errors)")
    }
    return outcome
  }

  private mutating func must(_ device: String, _ arguments: [String]) async throws {
    let outcome = try await again(device, arguments)
    try #require(outcome.status == 0, "\(outcome.errors)")
  }

  /// Runs the command without killing it.
  private mutating func again(_ device: String, _ arguments: [String]) async throws -> ProgramWorld.Outcome {
    let outcome = try await world.zdc(device, arguments)
    log.append("\(device) zdc \(arguments.joined(separator: " ")), again: \(outcome.status)")
    return outcome
  }

  private mutating func newSource() -> URL {
    sources += 1
    return world.folder.appendingPathComponent("source-\(sources)")
  }

  private mutating func newBytes() -> Data { Data(dice.bytes(dice.number(1...2_000))) }

  // MARK: Comparing trees

  private mutating func expectTree(_ device: String) async throws {
    try await must(device, ["sync"])
    let copy = world.folder.appendingPathComponent("copy")
    try await must(device, ["get", Self.top, copy.path])
    let differences = model.differences(from: try FileTreeModel(readingFrom: copy))
    try FileManager.default.removeItem(at: copy)
    guard differences.isEmpty else {
      throw HistoryFailure(description: "wanted against \(device):\n\(differences.joined(separator: "\n"))")
    }
  }
}

struct HistoryFailure: Error, CustomStringConvertible {
  let description: String
}
