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

  /// Another account shares a folder with the device's user, who accepts it: the folder's log begins with a state.
  static let state: Job = { exercise, device in
    let owner = try await exercise.owner(sharing: "/list", with: device)
    let list = try await owner.cloudID("/list")
    try await owner.close()
    try await device.sync()
    for attempt in 0..<4 {
      do {
        try await device.accept(list, of: owner)
        break
      } catch  where attempt < 3 { exercise.clock.advance(by: .seconds(600)) }
    }
    try await device.sync()
    try await device.download()
    return try await device.branch("detached:/" + list) ?? "no list"
  }

  private func owner(sharing path: String, with device: TestDevice) async throws -> TestDevice {
    let owner = try await TestDevice("B", server: server, clock: clock)
    try await owner.createAccount()
    for (name, text) in [("", "top"), ("/a", "1"), ("/b", "2")] { try await owner.create(path + name, text) }
    try await owner.sync()
    try await owner.meet(device)
    try await owner.share(path, with: device)
    try await owner.sync()
    return owner
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
