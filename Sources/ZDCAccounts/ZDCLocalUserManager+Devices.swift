public import Foundation
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// A device of an account, as its server knows it.
///
/// ```swift
/// for device in try await session.localUserManager.devices(of: user.uuid) where device.lastLoginDate == nil {
///   print(device.id, "is logged out")
/// }
/// ```
public struct ZDCDevice: Sendable, Hashable, Identifiable {
  /// The text of the device's ID, which is random and drawn at the first login.
  public let id: String
  /// When the device logged in for the first time.
  public let addedDate: Date
  /// When the device opened its newest session; nil if it has none any more.
  public let lastLoginDate: Date?
  /// Whether it is this device.
  public let isCurrent: Bool
}

// The devices of an account (PROTOCOL 3.4).

extension ZDCLocalUserManager {
  /// Returns the devices of an account, in the order in which they were added. The server's word: it may hide devices.
  ///
  /// ```swift
  /// let devices = try await session.localUserManager.devices(of: user.uuid)
  /// show(devices.map { $0.isCurrent ? "this device" : "added \($0.addedDate.formatted())" })
  /// ```
  ///
  /// - Parameter localUserID: The ID of the local user.
  /// - Throws: ``ZDCError`` with `localUserNotFound`; `ZDCServerError`; `ZDCTransportError`.
  public func devices(of localUserID: String) async throws -> [ZDCDevice] {
    let api = try await serverAPI(for: try Self.userID(localUserID))
    let list = try await translating { try await api.sessions() }
    return list.devices.sorted { ($0.createdMs, $0.deviceID) < ($1.createdMs, $1.deviceID) }.map { device in
      ZDCDevice(
        id: device.deviceID.text, addedDate: Date(milliseconds: device.createdMs),
        lastLoginDate: device.lastLoginMs.map(Date.init(milliseconds:)), isCurrent: device.isCurrent)
    }
  }

  /// Removes a device from the account: its sessions end immediately, and the server forgets its key.
  ///
  /// The device keeps the data that it has, and the account's words, with which it can log in again. To lock out a
  /// device that is lost or in other hands, change the words: ``changeAccessWords(for:)`` logs out all other devices.
  ///
  /// ```swift
  /// let devices = try await session.localUserManager.devices(of: user.uuid)
  /// for device in devices where !device.isCurrent {
  ///   try await session.localUserManager.revokeDevice(device.id, of: user.uuid)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - deviceID: The ID of the device, from ``devices(of:)``.
  ///   - localUserID: The ID of the local user.
  /// - Throws: ``ZDCError`` with `localUserNotFound` or `deviceNotFound`; `ZDCServerError`; `ZDCTransportError`.
  public func revokeDevice(_ deviceID: String, of localUserID: String) async throws {
    let api = try await serverAPI(for: try Self.userID(localUserID))
    guard let device = DeviceID(text: deviceID) else { throw ZDCError(.deviceNotFound) }
    do {
      try await translating { try await api.endSessions(of: device) }
    } catch let error as ServerError where error.code == .notFound {
      throw ZDCError(.deviceNotFound, underlying: error)
    }
  }

  /// - Returns: The number of devices whose sessions were ended.
  func revokeOtherDevices(for localUserID: String) async throws -> Int {
    let others = try await devices(of: localUserID).filter { !$0.isCurrent }
    for device in others {
      do { try await revokeDevice(device.id, of: localUserID) } catch let error as ZDCError
        where error.code == .deviceNotFound
      {
        // It has logged out in the meantime.
      }
    }
    return others.count
  }
}

extension Date {
  fileprivate init(milliseconds: UInt64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1_000) }
}
