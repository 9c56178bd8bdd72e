internal import Foundation
package import ZeroDarkCloud

// Messages between the accounts of a test.

extension TestDevice {
  /// Queues a message. Its content is the text, which the recording delegate returns.
  @discardableResult
  package func send(
    _ text: String, to recipients: TestDevice..., after operations: [ZDCCloudOperation] = [], isSignal: Bool = false
  ) async throws -> ZDCNode {
    let users = try recipients.map { ZDCUser(uuid: try $0.localUserID, isLocal: false) }
    return try await write { transaction, cloud in
      let node =
        try isSignal
        ? cloud.sendSignal(toRecipient: users[0], withDependencies: operations)
        : cloud.sendMessage(toRecipients: users, withDependencies: operations)
      RecordingDelegate.store(TestContent(text), of: node, transaction)
      return node
    }
  }

  /// The messages in the inbox or the outbox, oldest first, as `sender: text` by the names of devices.
  package func messages(
    _ trunk: ZDCTreesystemTrunk = .inbox, from others: TestDevice...
  ) async throws -> [String] {
    try await download()
    let names = try others.reduce(into: [:]) { $0[try $1.localUserID] = $1.name }
    return try await write { transaction, cloud in
      guard let root = cloud.trunkNode(trunk) else { return [] }
      return try cloud.children(ofNodeID: root.uuid).sorted { $0.cloudID < $1.cloudID }.map { node in
        let text =
          try RecordingDelegate.content(of: node, transaction).map { String(decoding: $0.data, as: UTF8.self) } ?? "?"
        return "\(node.senderID.map { names[$0] ?? "someone unknown" } ?? "me"): \(text)"
      }.sorted()
    }
  }
}
