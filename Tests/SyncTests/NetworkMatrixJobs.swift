import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Jobs that use several routes of one feature.
extension NetworkExercise {
  /// A device offers its key, and gets an answer.
  static let link: Job = { _, device in
    let api = try await device.api
    let (id, nonce) = (DeviceLinkID.random(), DeviceLinkNonce.random())
    let offer = DeviceLinkOffer(publicKey: try DecryptionKey.random().publicKey, nonce: nonce).bytes
    try await api.connection.offerDevice(offer, as: id)
    let offered = try await api.offeredDevice(id)
    try await api.answerDevice(id, [1, 2, 3])
    let answer = try await api.connection.deviceLinkAnswer(id)
    try await api.connection.revealNonce(nonce, of: id)
    let revealed = try await api.deviceLinkNonce(id)
    return "\(offered == offer) \(answer == [1, 2, 3]) \(revealed == nonce.bytes)"
  }

  static let pages: Job = { _, device in
    let zones = try await device.api.zones(since: nil).zones.map { ZonePosition(zone: $0.zone, after: nil) }
    return "\(try await device.api.commitPages(zones, withRecords: true).map { $0.log?.seq })"
  }

  /// A zone that does not exist; an error is an answer, too.
  static let membership: Job = { _, device in
    let api = try await device.api
    let zone = ZoneID(tree: Bytes32(labelledHash: "tree"), root: .zero)
    do { try await api.acceptZone(zone) } catch let error as ServerError where error.code == .notFound {}
    try await api.forgetZone(zone)
    return "\(try await api.zones(since: nil).zones.count)"
  }

  /// All requests of a mailbox, about users and messages that do not exist.
  static let mailbox: Job = { _, device in
    let api = try await device.api
    let (user, tree): (UserID, TreeID) = (Bytes32(labelledHash: "user"), Bytes32(labelledHash: "tree"))
    let envelope = MessageEnvelope(
      id: .random(), recipient: user, inbox: tree, recipientEncGen: 1, sealed: [UInt8](repeating: 7, count: 2_000))
    let results = try await api.deliver([envelope.bytes])
    guard let own = UserID(text: try device.localUserID) else { throw TestFailure("no user id") }
    let inbox = TreeID.derive(owner: own, trunk: .inbox, appTreeID: TestDevice.treeID)
    let listed = try await api.waitingMessages(in: inbox, after: 0)
    let name = MessageName(sender: user, id: .zero)
    let read = try await api.envelopes([name], in: inbox)
    try await api.deleteMessage(name, in: inbox)
    var answers: [String] = []
    for state in [SenderRequest.State.accepted, nil] {
      do { try await api.setSender(user, to: state, in: inbox) } catch let error as ServerError
        where error.code == .notFound
      {
        answers.append("notFound")
      }
    }
    return "\(results) \(listed.messages.count) \(read.count) \(answers)"
  }
}
