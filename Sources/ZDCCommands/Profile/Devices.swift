internal import Foundation
internal import ZeroDarkCloud

/// `zdc devices …`
package enum Devices {
  /// One device per line: `{"addedMs","deviceID","isCurrent","lastLoginMs"?}`
  struct Listed: Encodable, Sendable {
    var deviceID: String
    var addedMs: UInt64
    var lastLoginMs: UInt64?
    var isCurrent: Bool

    init(_ device: ZDCDevice) {
      deviceID = device.id
      addedMs = device.addedDate.milliseconds
      lastLoginMs = device.lastLoginDate?.milliseconds
      isCurrent = device.isCurrent
    }
  }

  package static func list(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    for device in try await opened.users.devices(of: opened.localUserID()) {
      try options.output.object(Listed(device))
      options.output.line(line(Listed(device)))
    }
    try await opened.close()
  }

  private static func line(_ device: Listed) -> String {
    let now = WallClock.milliseconds
    let login = device.lastLoginMs.map { "logged in \(Amounts.ago($0, now: now))" } ?? "no session"
    let current = device.isCurrent ? "  (this device)" : ""
    return "\(device.deviceID)  added \(Amounts.ago(device.addedMs, now: now))  \(login)\(current)"
  }

  package static func revoke(_ options: ProfileOptions, deviceID: String) async throws {
    let opened = try OpenProfile.open(options)
    try await opened.users.revokeDevice(deviceID, of: opened.localUserID())
    try options.output.object(["deviceID": deviceID])
    options.output.note("its sessions are over; if it is in other hands, change the words: zdc account rotate-words")
    try await opened.close()
  }
}

extension Date {
  fileprivate var milliseconds: UInt64 { UInt64(max(0, timeIntervalSince1970 * 1_000)) }
}
