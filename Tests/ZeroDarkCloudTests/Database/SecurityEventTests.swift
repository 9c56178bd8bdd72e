import Foundation
import GRDB
import Testing
import ZDCProtocol

@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZeroDarkCloud

/// Evidence against a server is recorded, and a server that keeps presenting it cannot fill the disk.
@Suite struct SecurityEventTests {
  private func events(_ device: CloudFixture) async throws -> [ZDCSecurityEvent] {
    try await #require(device.zdc.syncManager).securityEvents(localUserID: device.userID)
  }

  private func record(_ device: CloudFixture, _ errors: [ZDCSecurityError], freezes: Bool = false) async throws {
    try await device.write { cloud in
      let zone = try #require(try cloud.transaction.zones.zones(localUser: cloud.localUser).first)
      for (index, error) in errors.enumerated() {
        try cloud.readWrite.record(error, localUser: cloud.localUser, zone: zone.id, atMs: UInt64(index + 1) * 1_000)
      }
      guard freezes, let last = errors.last else { return }
      var frozen = zone
      frozen.frozen = last.code
      try cloud.transaction.zones.update(frozen)
    }
  }

  /// => a repeated event increments its count and becomes the latest one
  @Test func equalOnes_areOne() async throws {
    let device = try await CloudFixture()
    let (node, other) = (NodeID.random(), NodeID.random())
    let first = ZDCSecurityError(.recordAuthFailed, node: node)
    try await record(device, [first, ZDCSecurityError(.recordAuthFailed, node: other), first, first])
    let events = try await events(device)
    #expect(events.map(\.error.node) == [node, other])
    #expect(events.map(\.times) == [3, 1])
    #expect(events[0].date == Date(timeIntervalSince1970: 4) && events[0].firstDate == Date(timeIntervalSince1970: 1))
  }

  /// => the oldest events are dropped, but not the reason why a tree is frozen
  @Test func theyAreBounded() async throws {
    let device = try await CloudFixture()
    try await record(device, [ZDCSecurityError(.zoneForkDetected)], freezes: true)
    try await record(device, (0..<1_100).map { _ in ZDCSecurityError(.recordAuthFailed, node: .random()) })
    let stored = try await device.zdc.rw.read { transaction in
      try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM zdc_security_event")
    }
    #expect(stored == ZDCSecurityEvent.limit + 1)
    let frozen = try await #require(device.zdc.syncManager).frozenZones(localUserID: device.userID)
    #expect(frozen.first?.since == Date(timeIntervalSince1970: 1))
  }
}
