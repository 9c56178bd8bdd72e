import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Edit, merge, edit again: real devices over the real server, with an app as reference 7.4 describes it.
struct MergeLoopTests {
  private static func devices(_ world: TestWorld, reports: [Bool] = [true, true, true]) async throws -> [MergeDevice] {
    var devices: [MergeDevice] = []
    var words: [String]?
    for (index, reports) in reports.enumerated() {
      let device = try await MergeDevice("\(index)", world, reports: reports, words: words)
      if words == nil { words = try await device.device.createAccount() }
      devices.append(device)
    }
    try await devices[0].create(
      Shopping(prices: ["milk": 1, "tea": 1], items: ["milk": .init(), "tea": .init(), "rice": .init()]))
    for device in devices { _ = try await device.sync() }
    return devices
  }

  /// - Returns: The list that all devices show once no device has anything queued.
  private static func settle(_ devices: [MergeDevice]) async throws -> Shopping {
    for round in 1... {
      var isBusy = false
      for device in devices where try await device.sync() { isBusy = true }
      if !isBusy { break }
      try #require(round < 6, "after a few rounds, every device has every change")
    }
    let list = try await devices[0].list()
    for device in devices {
      #expect(try await device.list() == list)
      #expect(try await device.device.queueCount() == 0)
    }
    return list
  }

  @Test(arguments: [[true, true, true], [false, false, false], [true, false, true]], Array(UInt64(1)...4))
  func threeDevices_editMergeEdit_settle(reports: [Bool], seed: UInt64) async throws {
    try await TestWorld.run { world in
      let devices = try await Self.devices(world, reports: reports)
      var dice = Dice(seed: seed)
      for step in 0..<24 {
        let device = devices[dice.roll(3)]
        if dice.roll(3) == 0 {
          _ = try await device.sync()
        } else {
          let (what, key, place) = (dice.roll(7), ["milk", "tea", "rice", "salt"][dice.roll(4)], dice.roll(3))
          try await device.edit { $0.change(what, key, step, at: place) }
        }
      }
      _ = try await Self.settle(devices)
    }
  }

  /// Each device changes separate keys: none of that is ever lost, in any order.
  @Test(arguments: Array(UInt64(1)...4))
  func changesOfOneDeviceAlone_areKept(seed: UInt64) async throws {
    try await TestWorld.run { world in
      let devices = try await Self.devices(world)
      var dice = Dice(seed: seed)
      var expected: [String: Int] = ["milk": 1, "tea": 1]
      for step in 1...20 {
        let owner = dice.roll(3)
        let key = "\(owner).\(dice.roll(2))"
        try await devices[owner].edit {
          $0.prices[key] = step
          $0.tags.insert(step)
        }
        expected[key] = step
        if dice.roll(2) == 0 { _ = try await devices[owner].sync() }
      }
      let list = try await Self.settle(devices)
      #expect(list.prices.rawDictionary == expected)
      #expect(list.tags.rawSet == Set(1...20))
    }
  }

  /// - both change a key, and B is late
  /// => the cloud wins; B's value is in B's journal and can be restored as a new change
  @Test func bothModifiedAKey_theLoserIsInTheJournal_andCanBeBroughtBack() async throws {
    try await TestWorld.run { world in
      let devices = try await Self.devices(world, reports: [true, true])
      let (a, b) = (devices[0], devices[1])
      try await a.edit {
        $0.title = "A"
        $0.prices["milk"] = 2
      }
      try await b.edit {
        $0.title = "B"
        $0.prices["tea"] = 3
      }
      _ = try await a.sync()
      let list = try await Self.settle([b, a])
      #expect(list.title == "A" && list.prices == ["milk": 2, "tea": 3])
      #expect(try await a.journal() == [])
      let entry = try #require(try await b.journal().first)
      #expect(entry.kind == .merged)
      #expect(try entry.cloudWriterID == a.device.localUserID)
      #expect(entry.base.eTag != nil && entry.theirs.eTag != nil && entry.base.eTag != entry.theirs.eTag)
      #expect(entry.theirs.path == ZDCTreesystemPath(pathComponents: ["list"]))
      let conflict = try #require(entry.report?.conflicts.first)
      #expect(conflict.path == ["title"])
      #expect(try conflict.value(\.base, as: String.self) == "list")
      #expect(try conflict.value(\.mine, as: String.self) == "B")
      #expect(try conflict.value(\.theirs, as: String.self) == "A")
      #expect(try conflict.value(\.result, as: String.self) == "A")

      try await b.undoNewest()
      let undone = try await Self.settle([b, a])
      #expect(undone.title == "B" && undone.prices == ["milk": 2, "tea": 3])
      #expect(try await b.journal().first?.undoneAt != nil)
      await #expect(throws: ZDCCloudError.self) { try await b.undoNewest() }
    }
  }

  /// - every change of B loses
  /// => nothing remains to be sent, and B sends nothing
  @Test func anEmptyMerge_sendsNothing() async throws {
    try await TestWorld.run { world in
      let devices = try await Self.devices(world, reports: [true, true])
      try await devices[0].edit { $0.title = "A" }
      try await devices[1].edit { $0.title = "B" }
      _ = try await devices[0].sync()
      _ = try await Self.settle(devices.reversed())
      let dump = try world.server.dump()
      #expect(dump.contains("home: seq 2"), "\(dump)")
    }
  }

  /// - after B's own change of a value has lost, the cloud's value returns to what B began with
  /// => that is another user's wish, and not B's change: the pending changesets from before the merge would say
  /// otherwise
  @Test func remainingTakesThePlaceOfThePendingChangesets() async throws {
    try await TestWorld.run { world in
      let devices = try await Self.devices(world, reports: [true, true])
      let (a, b) = (devices[0], devices[1])
      try await a.edit { $0.title = "A" }
      try await b.edit {
        $0.title = "B"
        $0.note = "kept"
      }
      _ = try await a.sync()
      // B pulls and merges, but cannot push.
      _ = try await b.device.pull()
      try await b.mergeOnly()
      #expect(try await b.list().title == "A")
      try await a.edit { $0.title = "list" }
      _ = try await a.sync()
      let list = try await Self.settle([b, a])
      #expect(list.title == "list" && list.note == "kept")
    }
  }

  @Test func journalAndHeldConflict_surviveARelaunch() async throws {
    try await TestWorld.run { world in
      let devices = try await Self.devices(world, reports: [true, true])
      let (a, b) = (devices[0], devices[1])
      try await a.edit { $0.title = "A" }
      try await b.edit { $0.title = "B" }
      _ = try await a.sync()
      _ = try await b.sync()
      let before = try await b.journal()
      #expect(before.count == 1)
      b.app.attach(nil)
      try await b.device.relaunch()
      b.app.attach(try b.device.zdc)
      #expect(try await b.journal() == before)
      _ = try await Self.settle([a, b])
    }
  }
}

extension MergeDevice {
  /// Restores what the newest entry says was lost, as the journal's own example does.
  func undoNewest() async throws {
    try await device.write { transaction, cloud in
      let entry = try #require(cloud.mergeJournal().first)
      let undo = try cloud.undo(entry)
      var list = try #require(
        transaction.object(forKey: undo.nodeID, inCollection: Shopping.collection) as? Shopping)
      let redo = try list.undo(try #require(undo.changeset))
      transaction.setObject(list, forKey: undo.nodeID, inCollection: Shopping.collection)
      cloud.queueDataUpload(forNodeID: undo.nodeID, withChangeset: redo)
    }
  }
}

extension Shopping {
  fileprivate mutating func change(_ what: Int, _ key: String, _ number: Int, at place: Int) {
    switch what {
    case 0: title = "\(number)"
    case 1: prices[key] = number % 5 == 0 ? nil : number
    case 2: items[key]?.count = number
    case 3: items[key]?.isDone.toggle()
    case 4:
      if items[key] == nil {
        items.insert(Item(count: number), forKey: key, at: min(place, items.count))
      } else if number % 4 == 0 {
        items[key] = nil
      } else if let index = items.firstIndex(ofKey: key) {
        items.move(from: index, to: min(place, items.count - 1))
      }
    case 5: if number % 2 == 0 { tags.insert(number % 6) } else { tags.remove(number % 6) }
    default: log.append(number)
    }
  }
}

/// A random number generator with a seed.
struct Dice {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
  }

  mutating func roll(_ sides: Int) -> Int {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return Int((state >> 16) % UInt64(sides))
  }
}
