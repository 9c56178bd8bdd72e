internal import Crypto
internal import CryptoExtras
internal import Foundation
internal import ZDCProtocol

/// A database key under a passphrase, for platforms without a key store (PROTOCOL 3.16).
///
/// `"ZDKF" u8 1 u8 1 | u8 log2(N) u32 r u32 p | b[16] salt | v32 SEAL(scrypt(pass, salt), "key-file", all before, key)`
package enum KeyFile {
  struct Cost: Equatable {
    var logN: UInt8 = 17
    var r: UInt32 = 8
    var p: UInt32 = 1

    /// The minimum cost, fixed at compile time: an attacker who can write the file must not make guessing cheap. The
    /// ceiling limits memory.
    static let floor = Cost()
    static let ceiling = Cost(logN: 20, r: 16, p: 8)
  }

  private static let saltBytes = 16

  /// Seals a key under a passphrase. Slow by design: about half a second and 128 MiB.
  package static func seal(_ key: DatabaseKey, passphrase: String) throws(CryptoFailure) -> [UInt8] {
    var source = SystemRandomSource()
    return try seal(key, passphrase: passphrase, random: &source)
  }

  package static func seal(
    _ key: DatabaseKey, passphrase: String, random: inout some RandomSource
  ) throws(CryptoFailure) -> [UInt8] {
    guard !passphrase.isEmpty else { throw .invalidParameter }
    let salt = random.bytes(saltBytes)
    let header = header(.floor, salt: salt)
    let wrapping = try derive(passphrase, salt: salt, cost: .floor)
    let sealed = try Seal.seal(
      key: wrapping, label: "key-file", context: header, key.exportBytes(), random: &random)
    var out = ByteWriter(capacity: header.count + 4 + sealed.count)
    out.append(contentsOf: header)
    out.append32(sealed)
    return out.bytes
  }

  /// Opens a key file.
  ///
  /// - Throws: `CryptoFailure.authenticationFailure` for a wrong passphrase; `ZDCSecurityError` with
  ///   `kdfParametersTooWeak` for costs below the floor (checked before any work), `limitExceeded` for costs above the
  ///   ceiling, and `nonCanonicalEncoding` or `unsupportedVersion` for another format.
  package static func open(_ file: [UInt8], passphrase: String) throws -> DatabaseKey {
    var reader = ByteReader(file)
    try reader.readPreamble(magic: "ZDKF")
    let cost = Cost(logN: try reader.readUInt8(), r: try reader.readUInt32(), p: try reader.readUInt32())
    try check(cost)
    let salt = Array(try reader.read(count: saltBytes))
    let header = Array(file.prefix(reader.offset))
    let sealed = try reader.readVariable32(limit: 1 << 10)
    try reader.finish()
    let wrapping = try derive(passphrase, salt: salt, cost: cost)
    guard
      let bytes = try? Seal.open(key: wrapping, label: "key-file", context: header, sealed),
      let key = DatabaseKey(bytes)
    else { throw CryptoFailure.authenticationFailure }
    return key
  }

  private static func check(_ cost: Cost) throws(ZDCSecurityError) {
    let (floor, ceiling) = (Cost.floor, Cost.ceiling)
    let isStrong = cost.logN >= floor.logN && cost.r >= floor.r && cost.p >= floor.p
    try require(isStrong, .kdfParametersTooWeak)
    let isBounded = cost.logN <= ceiling.logN && cost.r <= ceiling.r && cost.p <= ceiling.p
    try require(isBounded, .limitExceeded)
  }

  private static func header(_ cost: Cost, salt: [UInt8]) -> [UInt8] {
    var out = ByteWriter(magic: "ZDKF", capacity: 31)
    out.append(cost.logN)
    out.append(cost.r)
    out.append(cost.p)
    out.append(contentsOf: salt)
    return out.bytes
  }

  /// Derives the wrapping key. The passphrase is normalized, so it opens from every keyboard.
  private static func derive(
    _ passphrase: String, salt: [UInt8], cost: Cost
  ) throws(CryptoFailure) -> SecretKey<PassphraseKeyRole> {
    do {
      return SecretKey(
        symmetric: try KDF.Scrypt.deriveKey(
          from: NameFolding.normalize(passphrase), salt: salt, outputByteCount: 32, rounds: 1 << Int(cost.logN),
          blockSize: Int(cost.r), parallelism: Int(cost.p)))
    } catch { throw .platformFailure }
  }
}
