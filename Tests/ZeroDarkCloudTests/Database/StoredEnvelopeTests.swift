import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// The sealed messages that a request takes from the database.
@Suite struct StoredEnvelopeTests {
  private let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  /// Queues a message to each recipient, with an envelope of 100 bytes.
  private func deliveries(_ count: Int) async throws -> (zone: Int64, operations: [Int64]) {
    try await device.write { cloud in
      let transaction = cloud.transaction
      let users = try (0..<count).map { _ in try Self.knownUser(transaction) }
      try cloud.sendMessage(
        toRecipients: users.map { ZDCUser(uuid: $0.text, isLocal: false) }, withDependencies: nil)
      let zone = try #require(
        try transaction.zones.zones(localUser: cloud.localUser).first { $0.trunk == .outbox })
      let operations = try transaction.operations.operations(zone: zone.id).filter { $0.kind == .deliver }
      for operation in operations {
        try transaction.messages.insert(
          StoredEnvelope(
            operation: operation.id, recipient: try #require(operation.recipient), seq: 1,
            bytes: [UInt8](repeating: 1, count: 100)))
      }
      return (zone.id, operations.map(\.id))
    }
  }

  private static func knownUser(_ transaction: ZDCReadTransaction) throws -> UserID {
    let birth = try NewAccount(accessKey: .random(), appTreeID: CloudFixture.treeID, timeMs: 1)
    var chain = ZDCProtocol.Bundle.Writer()
    chain.append(link: birth.genesis.bytes)
    try transaction.users.pin(chain.bytes, handle: nil, of: birth.userID, atMs: 1)
    return birth.userID
  }

  private func open(
    _ zone: Int64, orOf due: some Sequence<Int64>, count: Int = 256, bytes: Int = 1_000
  ) async throws -> [Int64] {
    let due = Set(due)
    return try await device.read { cloud in
      try cloud.transaction.messages.envelopes(zone: zone, orOf: due, count: count, bytes: bytes).map(\.operation)
    }
  }

  @Test func thoseWithoutAnAnswerAndThoseThatAreDueAreTaken_inQueueOrder() async throws {
    let (zone, operations) = try await deliveries(4)
    #expect(operations.count == 4)
    #expect(try await open(zone, orOf: []).isEmpty)
    try await device.write { try $0.operations.setState(.inFlight, reason: .inFlight, id: operations[2]) }
    #expect(try await open(zone, orOf: []) == [operations[2]])
    #expect(try await open(zone, orOf: [operations[1]]) == [operations[1], operations[2]])
    #expect(try await open(zone, orOf: operations, count: 3) == Array(operations[..<3]))
    #expect(try await open(zone, orOf: operations, bytes: 399) == Array(operations[..<3]))
    #expect(try await open(zone, orOf: operations, bytes: 400) == operations)
  }

  /// Damaged rows show what is decoded.
  @Test func othersAreNotDecoded() async throws {
    let (zone, operations) = try await deliveries(4)
    try await device.write { cloud in
      for operation in [operations[0], operations[3]] {
        try cloud.transaction.database.execute(
          sql: "UPDATE zdc_envelope SET recipient = x'00' WHERE operation = ?", arguments: [operation])
      }
    }
    #expect(try await open(zone, orOf: operations[1...2]) == Array(operations[1...2]))
    #expect(try await open(zone, orOf: operations[1...], count: 2) == Array(operations[1...2]))
    #expect(try await open(zone, orOf: operations[1...], bytes: 299) == Array(operations[1...2]))
    await #expect(throws: ZDCError.self) { try await open(zone, orOf: operations[1...]) }
  }
}
