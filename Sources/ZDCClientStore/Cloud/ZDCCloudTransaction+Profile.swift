internal import Foundation
package import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

extension ZDCReadWriteTransaction {
  /// Queues a change of the own profile, in place of one that is queued already.
  package func queue(_ profile: UserProfile, inbox zone: Int64, atMs now: UInt64) throws {
    if var queued = try profiles.queued(inbox: zone) {
      queued.changeset = profile.bytes
      return try operations.update(queued)
    }
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: zone, kind: .putProfile, nodeUUID: UUIDv7.make(atMs: now),
      nodeID: .random(), createdMs: now)
    operation.changeset = profile.bytes
    try operations.insert(&operation)
  }
}

extension ZDCCloudTransaction {
  /// Changes the local user's own name and avatar in this app, and queues the change.
  ///
  /// The user's other devices get it with their next pull. Then one of the user's devices sends it, sealed, to the people
  /// with whom the user shares: the members of the user's own trees and branches, and the owners and members of those
  /// that the user has accepted, at most 1,000 of them. People who begin to share later get it then. Of several changes
  /// before the next push, only the last one is sent.
  ///
  /// ```swift
  /// try cloudTransaction.setProfile(ZDCProfile(name: "Alice", avatar: jpeg))
  /// ```
  ///
  /// To take a name back, set a profile with an empty one.
  ///
  /// - Parameter profile: The whole profile: without an avatar, the old one goes.
  /// - Throws: ``ZDCCloudError``: `invalidParameter` for a name with control characters or of more than 256 bytes, and
  ///   for an avatar above 32 KiB; `missingParent` before the first pull.
  public func setProfile(_ profile: ZDCProfile) throws {
    let value = try checked(profile)
    guard let inbox = try root(.inbox) else {
      throw ZDCCloudError(.missingParent, detail: "the inbox has not been pulled yet")
    }
    let queued = try transaction.profiles.queued(inbox: inbox.zone)
    let known = try UserID(text: localUserID).flatMap {
      try transaction.profiles.profile(of: $0, localUser: localUser, tree: treeID)
    }
    guard queued != nil || known?.profile != value else { return }
    try readWrite.queue(value, inbox: inbox.zone, atMs: now)
    signalQueue()
  }

  private func checked(_ profile: ZDCProfile) throws -> UserProfile {
    do throws(ZDCSecurityError) {
      return try UserProfile(name: profile.name, avatar: Array(profile.avatar ?? .init()))
    } catch {
      throw ZDCCloudError(
        .invalidParameter,
        detail: error.code == .limitExceeded
          ? "a name has more than \(Limits.profileNameBytes) bytes, or an avatar more than \(Limits.profileAvatarBytes)"
          : "a name has a control character")
    }
  }
}
