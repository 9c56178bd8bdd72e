import Foundation
import GRDB
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A server and two devices that play many cases of one schedule side by side, each in a folder of its own.
///
/// The cases share requests and commits, which is what makes a hundred thousand of them affordable. They touch disjoint
/// branches. The world is made once: before each play, server and devices get back the files of the start.
actor SmallWorld {
  struct Failure: Sendable {
    var played: SmallCase
    var text: String
  }

  private struct Start: Sendable {
    var server: TestServer.Backup
    var devices: [TestDevice.Backup]
    var uuids: [Key: String]
    var cloudIDs: [Key: String]
    /// Texts by the version of the content.
    var texts: [String: String]
  }

  private struct Key: Hashable, Sendable {
    var number: Int
    var node: SmallNode
  }

  private let size: Int
  private let server: TestServer
  private let clock: ManualClock
  private let devices: [TestDevice]
  private let words: [String]
  private var start: Start?

  // Of the play.
  private var cases: [SmallCase] = []
  /// The uuids of labelled nodes on each device, and their ids in the cloud.
  private var uuids: [[Key: String]] = [[:], [:]]
  private var cloudIDs: [Key: String] = [:]
  private var failures: [Int: String] = [:]

  /// - Parameter size: how many cases it can play at a time.
  init(size: Int) async throws {
    self.size = size
    clock = ManualClock()
    server = try await TestServer.start(clock: clock)
    let a = try await TestDevice("A", server: server, clock: clock)
    words = try await a.createAccount()
    let b = try await TestDevice("B", server: server, clock: clock)
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

  /// The tree of the start, in a folder for each case, on both devices. B has fetched no content.
  private func makeStart() async throws -> Start {
    let made = try await devices[0].write { [size] transaction, cloud in
      var made: [Key: ZDCNode] = [:]
      for number in 0..<size {
        let top = Key(number: number, node: .top)
        made[top] = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(number)"]))
        for (node, parent) in SmallNode.atStart {
          made[Key(number: number, node: node)] = try Self.create(
            "\(node)", below: made[Key(number: number, node: parent)], "\(node)", transaction, cloud)
        }
      }
      return made
    }
    for device in devices { try await device.sync() }
    let texts = Self.texts(try await Self.files(of: devices[0]))
    let copies = [try await devices[0].backup(), try await devices[1].backup()]
    return Start(
      server: try await server.backup(), devices: copies, uuids: made.mapValues(\.uuid),
      cloudIDs: made.mapValues(\.cloudID), texts: texts)
  }

  // MARK: Playing

  /// - Returns: the cases that did not end as they should.
  func play(_ cases: [SmallCase]) async throws -> [Failure] {
    guard let schedule = cases.first?.schedule else { return [] }
    guard cases.count <= size, cases.allSatisfy({ $0.schedule == schedule }) else {
      throw TestFailure("cases that cannot be played together")
    }
    try await begin(cases)
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
    return failures.sorted { $0.key < $1.key }.map { Failure(played: cases[$0.key], text: $0.value) }
  }

  private func begin(_ cases: [SmallCase]) async throws {
    guard let start else { throw TestFailure("a world without a start") }
    try await server.restore(start.server)
    for (device, copy) in zip(devices, start.devices) { try await device.restore(copy) }
    (self.cases, failures) = (cases, [:])
    (uuids, cloudIDs) = ([start.uuids, [:]], start.cloudIDs)
  }

  private func merge(_ device: Int) async throws {
    if try await devices[device].queueCount() > 0 { try await devices[device].mergeConflicts() }
  }

  /// More than one commit would not be what the schedule says.
  private func push(_ device: Int) async throws {
    var pushed = try await devices[device].push()
    // Overtaken, it has the other device's commit now.
    if pushed.operations == 0 { pushed = try await devices[device].push() }
    guard pushed.commits <= 1 else {
      throw TestFailure("a push of \(cases.count) cases took \(pushed.commits) commits")
    }
    try await merge(device)
  }

  /// Syncs until nothing moves. What waits then is stuck.
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
    let made: [(Key, Result<ZDCNode?, any Error>)] = try await devices[device].write { transaction, cloud in
      var app = App(known: known, cloudIDs: ids, transaction: transaction, cloud: cloud)
      return work.map { index, operation in
        (Key(number: index, node: .made(number)), Result { try app.change(operation, index, "o\(number)") })
      }
    }
    for (key, result) in made {
      switch result {
      case .success(let node?): (uuids[device][key], cloudIDs[key]) = (node.uuid, node.cloudID)
      case .success: break
      case .failure(let error): note(key.number, "operation \(number) is not possible: \(error)")
      }
    }
  }

  private func note(_ number: Int, _ text: String) {
    failures[number] = failures[number].map { "\($0)\n\(text)" } ?? text
  }

  fileprivate static func create(
    _ name: String, below parent: ZDCNode?, _ text: String, _ transaction: ZDCReadWriteTransaction,
    _ cloud: ZDCCloudTransaction
  ) throws -> ZDCNode {
    var node = ZDCNode(localUserID: cloud.localUserID)
    (node.parentID, node.name) = (parent?.uuid, name)
    let stored = try cloud.insertNode(node)
    transaction.setObject(TestContent(text), forKey: stored.uuid, inCollection: TestContent.collection)
    return stored
  }

  /// The operations of one transaction.
  private struct App {
    let known: [Key: String]
    let cloudIDs: [Key: String]
    let transaction: ZDCReadWriteTransaction
    let cloud: ZDCCloudTransaction

    mutating func change(_ operation: SmallOperation, _ number: Int, _ text: String) throws -> ZDCNode? {
      switch operation {
      case .edit(let label):
        let node = try node(label, number)
        transaction.setObject(
          TestContent(data: Data(text.utf8), eTag: node.eTag_data), forKey: node.uuid,
          inCollection: TestContent.collection)
        cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
      case .create(let label):
        return try SmallWorld.create("x", below: try node(label, number), text, transaction, cloud)
      case .rename(let label):
        var node = try node(label, number)
        node.name = "x"
        _ = try cloud.modifyNode(node)
      case .move(let label, let parent):
        var node = try node(label, number)
        node.parentID = try self.node(parent, number).uuid
        _ = try cloud.modifyNode(node)
      case .delete(let label): _ = try cloud.delete(try node(label, number))
      case .replace(let label):
        let old = try node(label, number)
        let parent = old.parentID.flatMap { cloud.node(id: $0) }
        _ = try cloud.delete(old)
        return try SmallWorld.create(old.name ?? "", below: parent, text, transaction, cloud)
      }
      return nil
    }

    private func node(_ label: SmallNode, _ number: Int) throws -> ZDCNode {
      let key = Key(number: number, node: label)
      if let uuid = known[key], let node = cloud.node(id: uuid) { return node }
      guard let id = cloudIDs[key], let node = cloud.node(cloudID: id) else {
        throw TestFailure("\(label) is not there")
      }
      return node
    }
  }

  // MARK: Checking

  private func check() async throws {
    let witness = try await TestDevice("W", server: server, clock: clock)
    try await witness.login(words: words)
    try await witness.pull()
    var fresh = try await Self.files(of: witness)
    var texts = start?.texts ?? [:]
    for device in devices {
      let own = try await Self.files(of: device)
      texts.merge(Self.texts(own)) { $1 }
      compare(own, fresh, device.name)
      let errors = try await device.securityErrors()
      if !errors.isEmpty { note(0, "\(device.name) met \(errors)") }
      for line in try await device.queue().split(separator: "\n") {
        note(Self.number(of: line), "\(device.name) waits: \(line)")
      }
    }
    // Known to the app of a device that let the node go.
    if fresh.values.contains(where: { $0.values.contains { $0.version.map { texts[$0] == nil } ?? false } }) {
      try await witness.download()
      fresh = try await Self.files(of: witness)
      texts.merge(Self.texts(fresh)) { $1 }
    }
    try await witness.close()
    for number in cases.indices {
      let files = (fresh[number] ?? [:]).mapValues { file in file.version.flatMap { texts[$0] } ?? "(nothing)" }
      compare(files, with: cases[number].expected(), number)
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
    for text in cases[number].texts where !model.superseded.contains(text) {
      let count = lines.count { $0 == text }
      if count != 1 { note(number, "\"\(text)\" is there \(count) times") }
    }
  }

  private static func shown(_ files: [String: String]) -> String {
    files.sorted { $0.key < $1.key }.map { path, text in
      "\(path) \"\(text.replacingOccurrences(of: "\n", with: "|"))\""
    }.joined(separator: ", ")
  }

  /// What a device shows, by path.
  private typealias Files = [String: File]

  private struct File: Sendable {
    /// The version of the content; nil if it is not the cloud's.
    var version: String?
    /// What the app of this device has for it.
    var text: String?
  }

  private static func files(of device: TestDevice) async throws -> [Int: Files] {
    try await device.write { transaction, cloud in
      var nodes: [String: ZDCNode] = [:]
      for uuid in try String.fetchAll(transaction.database, sql: "SELECT uuid FROM zdc_node WHERE parent IS NOT NULL") {
        nodes[uuid] = cloud.node(id: uuid)
      }
      var files: [Int: Files] = [:]
      for node in nodes.values {
        let names = Self.names(node, nodes)
        guard names.count > 1, let number = Int(names[0]) else { continue }
        let content = try transaction.object(
          TestContent.self, forKey: node.uuid, inCollection: TestContent.collection)
        let isCurrent = content?.eTag == node.eTag_data
        files[number, default: [:]]["/" + names.dropFirst().joined(separator: "/")] = File(
          version: node.eTag_data, text: isCurrent ? content.map { String(decoding: $0.data, as: UTF8.self) } : nil)
      }
      return files
    }
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
  /// Every text that an app wrote.
  var texts: [String] {
    SmallNode.atStart.map { "\($0.node)" }
      + operations.indices.filter { index in
        switch operations[index] {
        case .edit, .create, .replace: true
        case .rename, .move, .delete: false
        }
      }.map { "o\($0)" }
  }
}
