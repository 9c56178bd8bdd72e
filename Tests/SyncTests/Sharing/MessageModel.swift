import Foundation
import Synchronization
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// A message that a random history has sent.
struct SentMessage {
  /// The `cloudID` of the sender's copy.
  let id: String
  /// The `cloudID` of the recipients' nodes.
  let received: String
  let sender: Int
  let recipients: Set<Int>
  let text: String
  var isBurned = false
  /// The recipients who have deleted it.
  var deletedBy: Set<Int> = []
  /// The recipient who has moved it into a home tree.
  var movedBy: Int?
  /// The recipients who may have declined it before a device of theirs had it.
  var declinedBy: Set<Int> = []
  /// The recipients who may have declined its burn, which waits in the mailbox like a message.
  var burnDeclinedBy: Set<Int> = []

  init(_ node: ZDCNode, _ text: String, from sender: Int, _ user: UserID, to recipients: [Int]) throws {
    guard let message = MessageID(text: node.cloudID) else { throw TestFailure("not a message: \(node.cloudID)") }
    (id, received) = (node.cloudID, NodeID(message: message, from: user).text)
    (self.sender, self.recipients, self.text) = (sender, Set(recipients), text)
  }
}

/// The messages of a random history.
struct MessageModel {
  private(set) var messages: [SentMessage] = []

  mutating func sent(_ message: SentMessage) { messages.append(message) }

  mutating func burned(_ id: String) {
    change {
      $0.id == id
    } _: {
      $0.isBurned = true
    }
  }

  mutating func deleted(_ received: String, by person: Int) {
    change {
      $0.received == received
    } _: {
      $0.deletedBy.insert(person)
    }
  }

  mutating func moved(_ received: String, by person: Int) {
    change {
      $0.received == received
    } _: {
      $0.movedBy = person
    }
  }

  /// Records that a person blocks a sender. The messages in `kept` are in the inbox already.
  mutating func declined(from sender: Int, by person: Int, except kept: Set<String>) {
    change {
      $0.sender == sender
    } _: {
      if !kept.contains($0.received) { $0.declinedBy.insert(person) }
      if $0.isBurned { $0.burnDeclinedBy.insert(person) }
    }
  }

  private mutating func change(
    where matches: (SentMessage) -> Bool, _ change: (inout SentMessage) -> Void
  ) {
    for index in messages.indices where matches(messages[index]) { change(&messages[index]) }
  }
}

/// The texts of messages that were sent before the change of the access list on which they depend.
final class EarlyMessages: Sendable {
  private let found = Mutex<[String]>([])

  var texts: [String] { found.withLock { $0 } }

  func note(_ text: String) { found.withLock { $0.append(text) } }
}

/// A message in an inbox, as the app of one device has it.
struct ArrivedMessage: Equatable {
  let text: String?
  let isRead: Bool?
}

// Actions with messages in random histories.

extension TestDevice {
  /// Queues a message to several users.
  func send(
    _ text: String, toAll recipients: [TestDevice], after operations: [ZDCCloudOperation]
  ) async throws -> ZDCNode {
    let users = try recipients.map { ZDCUser(uuid: try $0.localUserID, isLocal: false) }
    return try await write { transaction, cloud in
      let node = try cloud.sendMessage(toRecipients: users, withDependencies: operations)
      transaction.setObject(TestContent(text), forKey: node.uuid, inCollection: TestContent.collection)
      return node
    }
  }

  /// The messages of the inbox or the outbox.
  func messageNodes(_ trunk: ZDCTreesystemTrunk) async throws -> [ZDCNode] {
    try await write { _, cloud in
      guard let root = cloud.trunkNode(trunk) else { return [] }
      return try cloud.children(ofNodeID: root.uuid).sorted { $0.cloudID < $1.cloudID }
    }
  }

  /// The messages of the inbox, by `cloudID`.
  func received() async throws -> [String: ArrivedMessage] {
    try await write { transaction, cloud in
      guard let root = cloud.trunkNode(.inbox) else { return [:] }
      return try cloud.children(ofNodeID: root.uuid).reduce(into: [:]) { found, node in
        let content = try transaction.object(
          TestContent.self, forKey: node.uuid, inCollection: TestContent.collection)
        found[node.cloudID] = ArrivedMessage(
          text: content.map { String(decoding: $0.data, as: UTF8.self) }, isRead: node.isRead)
      }
    }
  }

  /// Counts the calls about messages in the app's database, in the transaction of each call.
  func countMessageCalls() {
    recorder.on(.sent, times: .max) { node, transaction in Self.count("sent \(node.cloudID)", transaction) }
    recorder.on(.new, times: .max) { node, transaction in
      if node.senderID != nil { Self.count("new \(node.cloudID)", transaction) }
    }
  }

  private static func count(_ call: String, _ transaction: ZDCReadTransaction) {
    guard let transaction = transaction as? ZDCReadWriteTransaction else { return }
    let known = transaction.object(forKey: call, inCollection: TestContent.collection) as? TestContent
    let content = TestContent(data: Data(count: (known?.data.count ?? 0) + 1))
    transaction.setObject(content, forKey: call, inCollection: TestContent.collection)
  }

  /// The number of calls about a message that committed.
  func messageCalls(_ call: String) async throws -> Int {
    try await write { transaction, _ in
      try transaction.object(TestContent.self, forKey: call, inCollection: TestContent.collection)?.data.count ?? 0
    }
  }
}
