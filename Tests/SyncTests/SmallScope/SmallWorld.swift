import Foundation
import GRDB
import Synchronization
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A server and two devices that play many cases of one schedule side by side, each in a separate folder.
///
/// The cases share requests and commits, which makes a hundred thousand of them affordable. They touch disjoint
/// branches. The world is made once: before each play, server and devices get their initial files back.
actor SmallWorld {
  struct Failure: Sendable {
    var played: SmallCase
    var text: String
  }

  private struct Start: Sendable {
    var server: TestServer.Backup
    var devices: [TestDevice.Backup]
    var uuids: [SmallKey: String]
    var cloudIDs: [SmallKey: String]
    /// Texts by version of the content.
    var texts: [String: String]
  }

  private let size: Int
  private let server: TestServer
  private let hostile: HostileServer
  private let refused = RefusedCommits()
  private let clock: ManualClock
  private let devices: [TestDevice]
  private let words: [String]
  private var start: Start?

  // The state of the current play.
  private var cases: [SmallCase] = []
  /// The uuids of labelled nodes on each device, and their ids in the cloud.
  private var uuids: [[SmallKey: String]] = [[:], [:]]
  private var cloudIDs: [SmallKey: String] = [:]
  private var failures: [Int: String] = [:]
  /// Texts of changes that the app could not make, in cases that the table leaves open.
  private var leftOut: [Int: Set<String>] = [:]
  /// Changes that the apps saw in the branches that they deleted.
  private var deletedByApps: [Int: Set<SmallNode>] = [:]

  /// - Parameter size: The number of cases that it can play at a time.
  init(size: Int) async throws {
    self.size = size
    clock = ManualClock()
    server = try await TestServer.start(clock: clock)
    hostile = HostileServer(server)
    let a = try await TestDevice("A", server: server, clock: clock, through: hostile)
    words = try await a.createAccount()
    let b = try await TestDevice("B", server: server, clock: clock, through: hostile)
    try await b.login(words: words)
    devices = [a, b]
    for device in devices { Self.prepare(device) }
    start = try await makeStart()
  }

  private static func prepare(_ device: TestDevice) {
    device.recorder.dataConflictPolicy = .mergeLines
    device.recorder.on(.deletedDirty, times: .max) { [unowned device] node, transaction in
      guard let transaction = transaction as? ZDCReadWriteTransaction,
        let cloud = try device.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
      else { return }
      _ = try cloud.delete(node)
    }
  }

  func end() async throws {
    for device in devices { try await device.close() }
    try await server.stop()
  }

  /// Makes the initial tree on both devices, in a folder for each case. B has fetched no content.
  private func makeStart() async throws -> Start {
    let made = try await devices[0].write { [size] transaction, cloud in
      var made: [SmallKey: ZDCNode] = [:]
      for number in 0..<size {
        let top = SmallKey(number: number, node: .top)
        made[top] = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(number)"]))
        for (node, parent) in SmallNode.atStart {
          made[SmallKey(number: number, node: node)] = try SmallApp.create(
            "\(node)", below: made[SmallKey(number: number, node: parent)], "\(node)", transaction, cloud)
        }
      }
      return made
    }
    for device in devices { try await device.sync() }
    let texts = Self.texts(try await Self.files(of: devices[0], knowing: [:]))
    let copies = [try await devices[0].backup(), try await devices[1].backup()]
    return Start(
      server: try await server.backup(), devices: copies, uuids: made.mapValues(\.uuid),
      cloudIDs: made.mapValues(\.cloudID), texts: texts)
  }

  // MARK: Playing

  /// Returns the cases that did not end as expected, or all of them if the play could not be finished.
  func failures(of cases: [SmallCase]) async -> [Failure] {
    do { return try await play(cases) } catch { return cases.map { Failure(played: $0, text: "\(error)") } }
  }

  private func play(_ cases: [SmallCase]) async throws -> [Failure] {
    guard let schedule = cases.first?.schedule else { return [] }
    guard cases.count <= size, cases.allSatisfy({ $0.schedule == schedule }) else {
      throw TestFailure("cases that cannot be played together")
    }
    try await begin(cases)
    hostile.tell(refused.listen)
    if schedule.hasSmallPages { hostile.tell(.pagesOfOne) }
    for step in schedule.steps {
      switch step {
      case .change(let device, let number): try await change(device, number)
      case .pull(let device):
        try await devices[device].pull()
        try await merge(device)
      case .push(let device): try await push(device)
      }
    }
    try await settle()
    try await check()
    // Any of the cases in the commit may be the reason; played alone, the case shows it.
    for refusal in refused.all { for number in cases.indices { note(number, "the server refused \(refusal)") } }
    return failures.sorted { $0.key < $1.key }.map { Failure(played: cases[$0.key], text: $0.value) }
  }

  private func begin(_ cases: [SmallCase]) async throws {
    guard let start else { throw TestFailure("a world without a start") }
    hostile.stopTampering()
    hostile.forgetRequests()
    refused.forget()
    try await server.restore(start.server)
    for (device, copy) in zip(devices, start.devices) { try await device.restore(copy) }
    (self.cases, failures, leftOut, deletedByApps) = (cases, [:], [:], [:])
    (uuids, cloudIDs) = ([start.uuids, [:]], start.cloudIDs)
  }

  private func merge(_ device: Int) async throws {
    if try await devices[device].queueCount() > 0 { try await devices[device].mergeConflicts() }
  }

  /// Sends until the queue is empty or waits. A delete may need a separate commit after one that moves something out.
  private func push(_ device: Int) async throws {
    for _ in 0..<6 {
      let pushed = try await devices[device].push()
      // The device was overtaken: it now has the other one's commit, and the server accepted none of its changes.
      if pushed.commits == 0 { break }
      try await merge(device)
    }
    try await merge(device)
  }

  /// Syncs until nothing changes any more. Operations that still wait are stuck.
  private func settle() async throws {
    for _ in 0..<8 {
      var isQuiet = true
      for device in devices {
        let summary = try await device.sync()
        let isWaiting = try await device.queueCount() > 0
        if isWaiting { try await device.mergeConflicts() }
        isQuiet = isQuiet && summary.pulled.commits == 0 && summary.pushed.commits == 0 && !isWaiting
      }
      if isQuiet { return }
      clock.advance(by: .seconds(600))
    }
  }

  private func change(_ device: Int, _ number: Int) async throws {
    let work = cases.enumerated().map { ($0.offset, $0.element.operations[number]) }
    let (known, ids) = (uuids[device], cloudIDs)
    typealias Made = (SmallKey, deleted: [SmallNode], Result<ZDCNode?, any Error>)
    let made: [Made] = try await devices[device].write { transaction, cloud in
      let app = SmallApp(known: known, cloudIDs: ids, transaction: transaction, cloud: cloud)
      return work.map { index, operation in
        let deleted = operation.deleted.map { app.branch(of: $0, index) } ?? []
        let key = SmallKey(number: index, node: .made(number))
        return (key, deleted, Result { try app.change(operation, index, "o\(number)") })
      }
    }
    for (key, deleted, result) in made {
      deletedByApps[key.number, default: []].formUnion(deleted)
      switch result {
      case .success(let node?): (uuids[device][key], cloudIDs[key]) = (node.uuid, node.cloudID)
      case .success: break
      case .failure(let error): noteImpossible(number, of: key.number, error)
      }
    }
  }

  /// Where the table does not say whether a node still exists, the app may find nothing to change.
  private func noteImpossible(_ operation: Int, of number: Int, _ error: any Error) {
    if cases[number].expected()?.isUndecided == true {
      leftOut[number, default: []].insert("o\(operation)")
    } else {
      note(number, "operation \(operation) is not possible: \(error)")
    }
  }

  private func note(_ number: Int, _ text: String) {
    failures[number] = failures[number].map { "\($0)\n\(text)" } ?? text
  }

  // MARK: Checking

  private func check() async throws {
    let witness = try await TestDevice("W", server: server, clock: clock, through: hostile)
    try await witness.login(words: words)
    try await witness.pull()
    var texts = start?.texts ?? [:]
    var fresh = try await Self.files(of: witness, knowing: texts)
    for device in devices {
      let own = try await Self.files(of: device, knowing: texts)
      texts.merge(Self.texts(own)) { $1 }
      compare(own, fresh, device.name)
      let errors = try await device.securityErrors()
      if !errors.isEmpty { note(0, "\(device.name) met \(errors)") }
      for line in try await device.queue().split(separator: "\n") {
        note(Self.number(of: line), "\(device.name) waits: \(line)")
      }
    }
    // Only the app of a device that dropped the node knew this text, so it must be downloaded.
    if fresh.values.contains(where: { $0.values.contains { $0.version.map { texts[$0] == nil } ?? false } }) {
      try await witness.download()
      fresh = try await Self.files(of: witness, knowing: texts)
      texts.merge(Self.texts(fresh)) { $1 }
    }
    try await witness.close()
    let models = cases.map { $0.expected() }
    for (number, model) in models.enumerated() {
      let files = (fresh[number] ?? [:]).mapValues { file in file.version.flatMap { texts[$0] } ?? "(nothing)" }
      compare(files, with: model, number)
    }
    try await checkJournals(models)
  }

  /// Checks that each change that a conflict removed is in the journal of the device that had it, or that dropped it.
  ///
  /// Skips schedules in which a push is overtaken: it may need a second commit, and then it is not certain which device
  /// gives way.
  private func checkJournals(_ models: [SmallModel?]) async throws {
    guard cases.first?.schedule.isOvertaken == false else { return }
    let wanted = models.map { model in model.map { $0.isUndecided ? [] : $0.journal } ?? [] }
    for (device, keeper) in devices.enumerated() where wanted.contains(where: { $0.contains { $0.device == device } }) {
      let entries = Dictionary(grouping: try await keeper.write { _, cloud in cloud.mergeJournal() }, by: \.cloudID)
      let labels = Dictionary(grouping: cloudIDs.keys, by: \.number)
      for (number, lines) in wanted.enumerated() {
        let own = (labels[number] ?? []).flatMap { key in
          (entries[cloudIDs[key] ?? ""] ?? []).map { SmallLine.Told(label: key.node, entry: $0) }
        }
        for line in lines where line.device == device && !own.contains(where: line.isTold) {
          note(number, "the journal has no line \(line); it has \(own.map(\.description).sorted())")
        }
      }
    }
  }

  private static func texts(_ files: [Int: Files]) -> [String: String] {
    var texts: [String: String] = [:]
    for file in files.values.flatMap(\.values) {
      if let version = file.version, let text = file.text { texts[version] = text }
    }
    return texts
  }

  private static func number(of line: Substring) -> Int {
    line.split(separator: "/").dropFirst().first.flatMap { Int($0) } ?? 0
  }

  private func compare(_ own: [Int: Files], _ fresh: [Int: Files], _ name: String) {
    for number in cases.indices {
      let (mine, theirs) = ((own[number] ?? [:]).mapValues(\.version), (fresh[number] ?? [:]).mapValues(\.version))
      guard mine != theirs else { continue }
      let others = theirs.filter { mine[$0.key] != $0.value }.keys.sorted()
      note(
        number,
        "\(name) shows \(mine.keys.sorted()); a fresh device \(theirs.keys.sorted()); it differs in \(others)")
    }
  }

  private func compare(_ fresh: [String: String], with model: SmallModel?, _ number: Int) {
    guard let model else { return }
    if !model.isUndecided, model.files != fresh {
      note(number, "the table says   \(Self.shown(model.files))\n  the cloud's tree \(Self.shown(fresh))")
    }
    let lines = fresh.values.flatMap { $0.split(separator: "\n").map(String.init) }
    let gone = model.superseded.union(leftOut[number] ?? [])
    let uncertain = model.uncertain.union(deletedUnforeseen(number))
    for (text, node) in cases[number].texts where !gone.contains(text) && !uncertain.contains(node) {
      let count = lines.count { $0 == text }
      if count != 1 { note(number, "\"\(text)\" is there \(count) times") }
    }
  }

  /// In pages of one, a device may show a node elsewhere than the model, which reads all pages at once: its app may have
  /// deleted a folder with the node in it.
  private func deletedUnforeseen(_ number: Int) -> Set<SmallNode> {
    cases[number].schedule.hasSmallPages ? deletedByApps[number] ?? [] : []
  }

  private static func shown(_ files: [String: String]) -> String {
    files.sorted { $0.key < $1.key }.map { path, text in
      "\(path) \"\(text.replacingOccurrences(of: "\n", with: "|"))\""
    }.joined(separator: ", ")
  }

  /// The nodes that a device shows, by path.
  private typealias Files = [String: File]

  private struct File: Sendable {
    /// The version of the content, or nil if the content is not the cloud's.
    var version: String?
    /// The text that the app of this device has for it.
    var text: String?
  }

  /// - Parameter texts: Texts by version, which need not be read again.
  private static func files(of device: TestDevice, knowing texts: [String: String]) async throws -> [Int: Files] {
    try await device.write { transaction, cloud in
      var nodes: [String: ZDCNode] = [:]
      for uuid in try String.fetchAll(transaction.database, sql: "SELECT uuid FROM zdc_node WHERE parent IS NOT NULL") {
        nodes[uuid] = cloud.node(id: uuid)
      }
      var files: [Int: Files] = [:]
      for node in nodes.values {
        let names = Self.names(node, nodes)
        guard names.count > 1, let number = Int(names[0]) else { continue }
        let text = try node.eTag_data.flatMap { texts[$0] } ?? Self.text(of: node, transaction)
        files[number, default: [:]]["/" + names.dropFirst().joined(separator: "/")] = File(
          version: node.eTag_data, text: text)
      }
      return files
    }
  }

  private static func text(of node: ZDCNode, _ transaction: ZDCReadTransaction) throws -> String? {
    let content = try transaction.object(
      TestContent.self, forKey: node.uuid, inCollection: TestContent.collection)
    guard let content, content.eTag == node.eTag_data else { return nil }
    return String(decoding: content.data, as: UTF8.self)
  }

  private static func names(_ node: ZDCNode, _ nodes: [String: ZDCNode]) -> [String] {
    var names: [String] = []
    var current: ZDCNode? = node
    while let step = current {
      names.append(step.name ?? "?")
      current = step.parentID.flatMap { nodes[$0] }
    }
    return names.reversed()
  }
}

extension SmallCase {
  /// Every text that an app wrote, with its node.
  var texts: [(text: String, node: SmallNode)] {
    SmallNode.atStart.map { ("\($0.node)", $0.node) }
      + operations.enumerated().compactMap { number, operation in
        switch operation {
        case .edit(let node): ("o\(number)", node)
        case .create, .replace: ("o\(number)", .made(number))
        case .rename, .move, .delete: nil
        }
      }
  }
}

/// Answers to commits that no honest device should get. A 409, for a device that is behind, does not count.
private final class RefusedCommits: Sendable {
  private let texts = Mutex<[String]>([])

  var all: [String] { texts.withLock { $0 } }

  func forget() { texts.withLock { $0 = [] } }

  /// Observes the answers without changing any.
  var listen: Lie {
    Lie { [self] answer in
      let isRefused = answer.route.method == "POST" && (400..<500).contains(answer.status) && answer.status != 409
      if isRefused { texts.withLock { $0.append("\(answer.status) \(String(decoding: answer.body, as: UTF8.self))") } }
      return false
    }
  }
}

extension Lie {
  /// Reduces each answer with commits to the first of them, with its records. This is no lie: a server may do so.
  fileprivate static let pagesOfOne = Lie { answer in
    let hasCommits = [Routes.zoneCommits, Routes.commits].contains(answer.route.pattern)
    guard hasCommits, answer.isBundle else { return false }
    let items = answer.items
    guard let first = items.first(where: { $0.kind == .commit })?.commit else { return false }
    let records = Set(first.fields.operations.compactMap { if case .put(let put) = $0 { put.record } else { nil } })
    var commits = 0
    answer.items = items.filter { item in
      if item.kind == .record { return item.record.map { records.contains($0.hash) } ?? false }
      if item.kind == .commit { commits += 1 }
      return commits == 0 || (commits == 1 && item.kind == .commit)
    }
    guard commits > 1 else { return false }
    answer.headers[WireHeaders.more] = "1"
    return true
  }
}
