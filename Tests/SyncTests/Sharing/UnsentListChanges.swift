import Foundation
import GRDB
import ZDCClientStore
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// The reasons for which changes of lists were not sent in a random history: those that the devices have, and the
/// branches that people have left.
struct UnsentListChanges: Sendable {
  /// A change of a member's entry that waits, because the list does not allow it to the device's user.
  struct Waiting: Hashable, Sendable {
    let device: String
    let cloudID: String
    let member: UserID
  }

  /// A person has deleted nodes. The branches of other people among them are left, with all that was not sent.
  struct Departure: Sendable {
    let device: String
    let person: Int
    /// The nodes, as this device showed them.
    let cloudIDs: Set<String>
    /// How many changes of lists people had asked for before.
    let askCount: Int
  }

  var waiting: Set<Waiting> = []
  /// For each device, the branches whose merge journal says that access ended while changes were queued.
  var lost: [String: Set<String>] = [:]
  var departures: [Departure] = []
}

extension People {
  func unsentListChanges() async throws -> UnsentListChanges {
    var unsent = UnsentListChanges()
    unsent.departures = asked.departures
    for device in devices {
      unsent.waiting.formUnion(try await device.disallowedListChanges())
      unsent.lost[device.name] = try await device.branchesLostWithChanges()
    }
    return unsent
  }

  /// Records that a device has deleted nodes.
  func noteDeparture(from cloudIDs: [String], by device: TestDevice) {
    guard let person = self.person(of: device) else { return }
    asked.append(
      UnsentListChanges.Departure(
        device: device.name, person: person, cloudIDs: Set(cloudIDs), askCount: asked.asks.count))
  }
}

extension TestDevice {
  /// The queued changes of members that a list does not allow any more. They wait until another list allows them.
  func disallowedListChanges() async throws -> [UnsentListChanges.Waiting] {
    let (kind, reason) = (OperationRow.Kind.changeList.rawValue, OperationRow.Reason.notAllowed.rawValue)
    return try await database.read { [name] transaction in
      try Row.fetchAll(
        transaction.database,
        sql: "SELECT nodeID, member FROM zdc_operation WHERE kind = ? AND reason = ? AND member IS NOT NULL",
        arguments: [kind, reason]
      ).compactMap { row in
        guard let node = NodeID(row[0] as Data), let member = UserID(row[1] as Data) else { return nil }
        return UnsentListChanges.Waiting(device: name, cloudID: node.text, member: member)
      }
    }
  }

  fileprivate func branchesLostWithChanges() async throws -> Set<String> {
    let entries = try await write { _, cloud in cloud.mergeJournal() }
    return Set(entries.filter { $0.kind == .accessLost }.map(\.cloudID))
  }
}
