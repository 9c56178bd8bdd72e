import ZDCAccounts
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

// Changes of keys and words.

extension PeopleHistory {
  mutating func changeKeys(_ device: TestDevice, of person: Int) async throws {
    switch Int.random(in: 0...7, using: &rareNumbers) {
    case 0: try await changeWords(device, of: person)
    case 1...2:
      // The person's other devices are logged out, and log in with the words that they have.
      await log.attempt("declares the keys compromised", device) { try await device.rotateKeys(areCompromised: true) }
    default: await rotateKeys(device)
    }
  }

  /// Replaces the person's keys, and after a removal those of the nodes.
  private func rotateKeys(_ device: TestDevice) async {
    await log.attempt("rotates keys", device) {
      try await device.rotateKeys()
      try await device.syncManager.replaceOldKeys(forLocalUserID: try device.localUserID)
    }
  }

  /// Gives the account new words, which the person then enters on their other devices.
  private func changeWords(_ device: TestDevice, of person: Int) async throws {
    var words: [String] = []
    let isDone = await log.attempt("changes the words", device) { words = try await device.changeWords() }
    guard isDone else { return }
    people.setWords(words, of: person)
    for other in people[person] where other !== device { try await other.enter(words: words) }
  }
}

extension People {
  /// Accepts the messages that were signed with keys which their senders have declared compromised since. They wait until
  /// their recipients decide.
  ///
  /// - Returns: The senders, by the recipient's number.
  func acceptHeldMessages() async throws -> [Int: Set<String>] {
    var senders: [Int: Set<String>] = [:]
    for (person, devices) in devicesByPerson.enumerated() {
      for device in devices {
        let (manager, user) = (try device.syncManager, try device.localUserID)
        let held = try await manager.messageRequests(forLocalUserID: user).filter(\.isKeyCompromised).map(\.senderID)
        for sender in Set(held) { try await manager.acceptMessages(fromUserID: sender, forLocalUserID: user) }
        senders[person, default: []].formUnion(held)
      }
    }
    return senders.filter { !$0.value.isEmpty }
  }
}

extension TestDevice {
  private var accounts: ZDCLocalUserManager {
    get throws {
      guard let manager = try zdc.localUserManager else { throw TestFailure("\(name)'s database is locked") }
      return manager
    }
  }

  fileprivate func changeWords() async throws -> [String] {
    try await accounts.changeAccessWords(for: try localUserID)
  }

  fileprivate func enter(words: [String]) async throws {
    try await accounts.renewLogin(of: try localUserID, words: words)
  }
}
