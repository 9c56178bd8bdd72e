internal import Foundation
internal import ZeroDarkCloud

/// `zdc user name`
package enum OwnProfile {
  /// `{"avatarBytes","durableMs"?,"name","queuedMs","userID"}`
  struct Report: Encodable, Sendable {
    var userID: String
    var name: String
    var avatarBytes: Int
    var queuedMs: UInt64
    var durableMs: UInt64?
  }

  /// - Parameter avatar: The path of an image; nil for none.
  package static func set(
    _ options: ProfileOptions, name: String, avatar: String?, queuesOnly: Bool
  ) async throws {
    let picture = try avatar.map(read)
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    let changes = try await queue(ZDCProfile(name: name, avatar: picture), engine)
    var report = Report(
      userID: engine.user, name: name, avatarBytes: picture?.count ?? 0, queuedMs: WallClock.milliseconds)
    if !queuesOnly {
      let progress = ProgressDisplay(ProgressLine(verb: "send", itemsTotal: 1), isEnabled: false)
      try await engine.settle(changes, progress: progress)
      report.durableMs = WallClock.milliseconds
    }
    try options.output.object(report)
    options.output.note(
      queuesOnly
        ? "queued: zdc sync sends it"
        : name.isEmpty ? "the account has no name" : "the account is called \(ShownName.text(name))")
    try await opened.close()
  }

  /// Reads one byte more than an avatar may have, so that a large file is refused without being read.
  private static func read(_ path: String) throws -> Data {
    guard let file = FileHandle(forReadingAtPath: path) else { throw FileFailure.error(path, reading: true) }
    defer { try? file.close() }
    return try file.read(upToCount: (32 << 10) + 1) ?? Data()
  }

  /// - Returns: The queued changes; empty if the account has this profile already.
  private static func queue(_ profile: ZDCProfile, _ engine: Engine) async throws -> NodeSet {
    try await engine.opened.connection.write { [opened = engine.opened, own = engine.user] transaction in
      guard let cloud = opened.zdc.cloudTransaction(transaction, forLocalUserID: own) else {
        throw ZDCError(.localUserNotFound)
      }
      try cloud.setProfile(profile)
      return NodeSet(cloud.explainQueue().filter { $0.kind == "putProfile" }.map(\.nodeID))
    }
  }
}
