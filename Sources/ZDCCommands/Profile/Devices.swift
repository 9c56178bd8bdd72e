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

  /// Gives the account to the device that shows the code, after the user has agreed or `isConfirmed`.
  package static func link(_ options: ProfileOptions, code: String, isConfirmed: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let request = try await opened.users.linkRequest(code: code, for: opened.localUserID())
    if !isConfirmed { try confirmLink() }
    let digits = try await request.approve()
    try options.output.object(["digits": digits])
    options.output.line(grouped(digits))
    options.output.note("the new device must show the same digits; if it does not, run zdc devices list")
    try await opened.close()
  }

  private static func confirmLink() throws {
    let question =
      "The device that shows this code gets full access to the account. Is it your own device, in front of you? Type yes: "
    guard try Terminal.readLine(question) == "yes" else {
      throw CommandError(.failure, "notConfirmed", "the device was not added", hint: "type yes to add it")
    }
  }

  /// Six digits as two groups.
  static func grouped(_ digits: String) -> String { "\(digits.prefix(3)) \(digits.suffix(3))" }

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
