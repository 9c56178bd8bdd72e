internal import Foundation
package import ZDCProtocol
internal import ZDCServer
internal import ZDCServerSQLite

extension TestServer {
  /// Appends commits to a zone's log, past the checks of a request, and restarts the server.
  ///
  /// A long log needs no records in this way. The nodes that the server stores stay as they are, so the commits must
  /// leave the zone as it was.
  ///
  /// - Parameter list: The access list in force.
  package func append(_ commits: [ZoneCommit], to zone: ZoneID, list: ZoneACL) async throws {
    try await stop()
    try await store(commits, in: zone, list: list)
    try await restart()
  }

  /// Releases the lock of the data folder at its end.
  private func store(_ commits: [ZoneCommit], in zone: ZoneID, list: ZoneACL) async throws {
    let data = try DataFolder(path: folder.path)
    try await data.metadata.write([.zone(zone)]) { tx in
      guard let key = try tx.zone(zone)?.key else { throw TestFailure("the server does not have the zone") }
      for commit in commits {
        let head = ZoneHead(zone: zone, seq: commit.fields.seq, hash: commit.hash, acl: list)
        let delta = ZoneDelta(target: .existing(key), head: head, commit: commit, receivedMs: 1)
        _ = try tx.apply(CommitDelta(zones: [delta]))
      }
    }
    try await data.metadata.close()
  }
}
