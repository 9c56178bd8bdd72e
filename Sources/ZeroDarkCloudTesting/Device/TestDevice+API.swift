internal import Foundation
internal import ZDCCrypto
package import ZDCProtocol
package import ZeroDarkCloud

// The wire API as a device's first account speaks it, for what the framework itself does not ask.

extension TestDevice {
  package var api: ServerAPI {
    get async throws {
      guard let manager = try zdc.localUserManager, let user = UserID(text: try localUserID) else {
        throw TestFailure("\(name)'s database is locked")
      }
      return try await manager.serverAPI(for: user)
    }
  }

  private var keys: UserKeys {
    get async throws {
      guard let manager = try zdc.localUserManager, let user = UserID(text: try localUserID) else {
        throw TestFailure("\(name)'s database is locked")
      }
      return try await manager.keys(for: user)
    }
  }
}
