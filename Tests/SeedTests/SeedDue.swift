import Foundation
import ZeroDarkCloud

// Declarations of what the seeds' fragments call and the framework does not have yet, so that the fragments compile.
// Nothing here is ever called. Work that adds one of these to the framework removes it here and runs its fragment.

private func notYet() -> Never { preconditionFailure("declared for the compiler only") }

// MARK: With sharing

struct ZDCCloudPath {
  init?(path: String) { notYet() }
  func path() -> String { notYet() }
}

struct ZDCGraftInvite {
  var cloudID: String
  var cloudPath: ZDCCloudPath
}

extension ZDCCloudReadTransaction {
  func graftInvite(for node: ZDCNode) -> ZDCGraftInvite? { notYet() }
}

extension ZDCCloudTransaction {
  @discardableResult
  func graftNode(
    withLocalPath localPath: ZDCTreesystemPath, remoteCloudPath: ZDCCloudPath, remoteCloudID: String,
    remoteUser: ZDCUser
  ) throws -> ZDCNode { notYet() }
}
