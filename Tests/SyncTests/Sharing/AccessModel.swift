import Foundation
import GRDB
import ZDCProtocol
import ZeroDarkCloudTesting

/// Who may read and write what: all versions of the access lists of home trees, as the server stores them.
struct AccessModel {
  /// The number of a commit among all commits of the server.
  typealias Position = Int64

  private struct Version {
    let position: Position
    let list: ZoneACL.Fields
  }

  private var zones: [ZoneID: [Version]] = [:]

  init(_ server: TestServer) throws {
    let versions = try Self.read(server) { db in
      try Row.fetchAll(
        db,
        sql: "SELECT c.feed_position, a.bytes FROM commits c JOIN acls a ON a.id = c.acl ORDER BY c.feed_position")
    }
    for row in versions {
      let list = try ZoneACL([UInt8](row[1] as Data)).fields
      guard list.trunk == .home else { continue }
      zones[list.zone, default: []].append(Version(position: row[0], list: list))
    }
  }

  /// Returns the position of the server's newest commit.
  static func position(of server: TestServer) throws -> Position {
    try read(server) { db in try Int64.fetchOne(db, sql: "SELECT MAX(feed_position) FROM commits") ?? 0 }
  }

  static func read<T>(_ server: TestServer, _ body: (Database) throws -> T) throws -> T {
    var configuration = GRDB.Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(5)
    let path = server.folder.appendingPathComponent("zdc.sqlite").path
    return try DatabaseQueue(path: path, configuration: configuration).read(body)
  }

  /// The newest list of each zone.
  var newest: [ZoneACL.Fields] { zones.keys.sorted().compactMap { zones[$0]?.last?.list } }

  /// Returns whether the newest list of a zone names the user.
  func isMember(_ user: UserID, of zone: ZoneID) -> Bool { zones[zone]?.last?.list.entry(for: user) != nil }

  /// Returns the permissions that a user has had in any zone of an owner since a position.
  func permissions(of user: UserID, in owner: UserID, since position: Position) -> [ZoneACL.Permissions] {
    zones.values.flatMap { versions -> [ZoneACL.Permissions] in
      let first = versions.lastIndex { $0.position <= position } ?? 0
      return versions[first...].filter { $0.list.owner == owner }.compactMap { $0.list.entry(for: user)?.permissions }
    }
  }
}
