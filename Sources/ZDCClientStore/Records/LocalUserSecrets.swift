package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// The sealed part of a local user's row.
///
/// `"ZDLU" u8 1 u8 1 | b[32] access key | b[16] deviceID | b[32] device seed | v16 origin | v16 appTreeID | v32 keyring
/// blob | v32 request`
package struct LocalUserSecrets: Sendable {
  package var accessKey: AccessKey
  package var deviceID: DeviceID
  package var deviceKey: SigningKey
  package var origin: String
  package var appTreeID: String
  /// Sealed under the access key, as the server has it.
  package var keyringBlob: [UInt8]
  /// The exact registration request until it was answered, or the bundle of the trunks that are being added.
  package var request: [UInt8] = []

  package var bytes: [UInt8] {
    var out = ByteWriter(magic: "ZDLU", capacity: 512 + keyringBlob.count + request.count)
    out.append(contentsOf: accessKey.exportBytes())
    out.append(deviceID)
    out.append(contentsOf: deviceKey.seed.exportBytes())
    out.append16(Array(origin.utf8))
    out.append16(Array(appTreeID.utf8))
    out.append32(keyringBlob)
    out.append32(request)
    return out.bytes
  }

  package init(
    accessKey: AccessKey, deviceID: DeviceID, deviceKey: SigningKey, origin: String, appTreeID: String,
    keyringBlob: [UInt8], request: [UInt8] = []
  ) {
    self.accessKey = accessKey
    self.deviceID = deviceID
    self.deviceKey = deviceKey
    self.origin = origin
    self.appTreeID = appTreeID
    self.keyringBlob = keyringBlob
    self.request = request
  }

  package init(_ bytes: [UInt8]) throws {
    var reader = ByteReader(bytes)
    try reader.readPreamble(magic: "ZDLU")
    let accessKey = AccessKey(try reader.read(count: 32))
    deviceID = try reader.read16()
    let seed = SigningSeed(try reader.read(count: 32))
    origin = String(decoding: try reader.readVariable16(), as: UTF8.self)
    appTreeID = String(decoding: try reader.readVariable16(), as: UTF8.self)
    keyringBlob = Array(try reader.readVariable32(limit: Limits.keyringBytes))
    request = Array(try reader.readVariable32(limit: Limits.jsonBytes))
    try reader.finish()
    guard let accessKey, let seed else { throw ZDCError(.corruptDatabase) }
    self.accessKey = accessKey
    deviceKey = SigningKey(seed: seed)
  }
}
