import Crypto
import Foundation
import Testing
import ZDCProtocol

@testable import ZDCCrypto

/// All Wycheproof files that concern us, run through our own calls, with the number of executed cases asserted.
@Suite struct WycheproofTests {
  private struct ChunkedGroup: Decodable {
    struct Case: Decodable {
      let tcId: Int
      let key: Hex
      let ctx: Hex
      let msgLength: Int?
      let msgSha512: Hex?
      let result: String
    }
    let tests: [Case]
  }

  @Test func chunkedEncryption_allCases_openOrFailAsPublished() throws {
    let name = "c2sp_chunked_encryption_aes_256_gcm"
    guard let groups = try PublishedVectors.wycheproof(name, ChunkedGroup.self) else { return }
    var executed = 0
    for test in groups.flatMap(\.tests) {
      let sealed = try #require(try PublishedVectors.data("wycheproof/c2sp_chunked_ct/\(test.tcId).bin"))
      let opened = SecretKey<RecordKeyRole>(test.key.bytes).flatMap {
        try? Seal.open(key: $0, rawContext: test.ctx.bytes, Array(sealed))
      }
      if test.result == "valid" {
        let plaintext = try #require(opened, "case \(test.tcId)")
        #expect(plaintext.count == test.msgLength)
        #expect(Array(SHA512.hash(data: plaintext)) == test.msgSha512?.bytes)
      } else {
        #expect(opened == nil, "case \(test.tcId)")
      }
      executed += 1
    }
    #expect(executed == 35)
  }

  private struct AEADGroup: Decodable {
    struct Case: Decodable {
      let tcId: Int
      let key, iv, aad, msg, ct, tag: Hex
      let result: String
    }
    let keySize, ivSize: Int
    let tests: [Case]
  }

  @Test func aesGCM_allCases_otherKeyAndNonceSizesAreRefused() throws {
    guard let groups = try PublishedVectors.wycheproof("aes_gcm", AEADGroup.self) else { return }
    var (executed, ours) = (0, 0)
    for group in groups {
      for test in group.tests {
        executed += 1
        let key = SymmetricKey(data: test.key.bytes)
        let combined = test.iv.bytes + test.ct.bytes + test.tag.bytes
        guard group.keySize == 256, group.ivSize == 96 else {
          #expect(throws: CryptoFailure.self, "case \(test.tcId)") {
            try AuthenticatedCipher.seal(test.msg.bytes, key: key, nonce: test.iv.bytes, aad: test.aad.bytes)
          }
          continue
        }
        ours += 1
        let opened = try? AuthenticatedCipher.open(Data(combined), key: key, aad: test.aad.bytes)
        let expected = test.result == "valid" ? test.msg.bytes : nil
        #expect(opened.map { Array($0) } == expected, "case \(test.tcId)")
        if test.aad.bytes.isEmpty {
          let apart = (test.ct.bytes + test.tag.bytes).withUnsafeBytes {
            try? AuthenticatedCipher.open($0, nonce: test.iv.bytes, key: key)
          }
          #expect(apart.map { Array($0) } == expected, "case \(test.tcId)")
        }
        if test.result == "valid" {
          let sealed = try AuthenticatedCipher.seal(
            test.msg.bytes, key: key, nonce: test.iv.bytes, aad: test.aad.bytes)
          #expect(Array(sealed) == combined, "case \(test.tcId)")
        }
      }
    }
    #expect(executed == 316)
    #expect(ours == 66)
  }

  private struct HKDFGroup: Decodable {
    struct Case: Decodable {
      let tcId: Int
      let ikm, salt, info, okm: Hex
      let size: Int
      let result: String
    }
    let tests: [Case]
  }

  private func runHKDF(
    _ name: String, digestBytes: Int, _ derive: (HKDFGroup.Case) throws -> [UInt8]
  ) throws -> Int? {
    guard let groups = try PublishedVectors.wycheproof(name, HKDFGroup.self) else { return nil }
    var executed = 0
    for test in groups.flatMap(\.tests) {
      executed += 1
      // The only invalid cases request more output than HKDF can produce; our two lengths are 32 and 76.
      guard test.size <= 255 * digestBytes else {
        #expect(test.result == "invalid", "case \(test.tcId)")
        continue
      }
      #expect(test.result == "valid", "case \(test.tcId)")
      #expect(try derive(test) == test.okm.bytes, "case \(test.tcId)")
    }
    return executed
  }

  @Test func hkdfSHA256_allCases_throughOurExpand() throws {
    let executed = try runHKDF("hkdf_sha256", digestBytes: 32) { test in
      let ikm = SymmetricKey(data: test.ikm.bytes)
      let prk = SymmetricKey(data: HKDF<SHA256>.extract(inputKeyMaterial: ikm, salt: test.salt.bytes))
      return KeyDerivation.expand256(prk, info: test.info.bytes, count: test.size).withUnsafeBytes { Array($0) }
    }
    #expect(executed == 86 || executed == nil)
  }

  @Test func hkdfSHA512_allCases_throughOurExpand() throws {
    let executed = try runHKDF("hkdf_sha512", digestBytes: 64) { test in
      let ikm = SymmetricKey(data: test.ikm.bytes)
      let prk = SymmetricKey(data: HKDF<SHA512>.extract(inputKeyMaterial: ikm, salt: test.salt.bytes))
      return KeyDerivation.expand512(prk, info: test.info.bytes, count: test.size).withUnsafeBytes { Array($0) }
    }
    #expect(executed == 83 || executed == nil)
  }

  private struct MACGroup: Decodable {
    struct Case: Decodable {
      let tcId: Int
      let key, msg, tag: Hex
      let result: String
    }
    let tagSize: Int
    let tests: [Case]
  }

  @Test func hmacSHA256_allCases_throughTheNameTagsHMAC() throws {
    guard let groups = try PublishedVectors.wycheproof("hmac_sha256", MACGroup.self) else { return }
    var executed = 0
    for group in groups {
      for test in group.tests {
        let code = KeyDerivation.authenticate(SymmetricKey(data: test.key.bytes), test.msg.bytes)
        let matches = constantTimeEqual(Array(code.prefix(group.tagSize / 8)), test.tag.bytes)
        #expect(matches == (test.result == "valid"), "case \(test.tcId)")
        executed += 1
      }
    }
    #expect(executed == 174)
  }

  private struct EdDSAGroup: Decodable {
    struct PublicKey: Decodable { let pk: Hex }
    struct Case: Decodable {
      let tcId: Int
      let msg, sig: Hex
      let result: String
    }
    let publicKey: PublicKey
    let tests: [Case]
  }

  @Test func ed25519_allCases_throughOurVerify() throws {
    guard let groups = try PublishedVectors.wycheproof("ed25519", EdDSAGroup.self) else { return }
    var executed = 0
    for group in groups {
      for test in group.tests {
        let isValid = Signatures.isValid(test.sig.bytes, by: group.publicKey.pk.bytes, signed: test.msg.bytes)
        #expect(isValid == (test.result == "valid"), "case \(test.tcId)")
        executed += 1
      }
    }
    #expect(executed == 151)
  }

  private struct XDHGroup: Decodable {
    struct Case: Decodable {
      let tcId: Int
      let `public`, `private`, shared: Hex
      let result: String
    }
    let tests: [Case]
  }

  @Test func x25519_allCases_platform() throws {
    guard let groups = try PublishedVectors.wycheproof("x25519", XDHGroup.self) else { return }
    var executed = 0
    for test in groups.flatMap(\.tests) {
      let secret = try? Curve25519.KeyAgreement.PrivateKey(rawRepresentation: test.private.bytes)
        .sharedSecretFromKeyAgreement(with: .init(rawRepresentation: test.public.bytes))
      let shared = secret?.withUnsafeBytes { Array($0) }
      // "acceptable" may be refused, but must never give a wrong result.
      #expect(shared == test.shared.bytes || (test.result == "acceptable" && shared == nil), "case \(test.tcId)")
      executed += 1
    }
    #expect(executed == 518)
  }

  private struct MLKEMGroup: Decodable {
    struct Case: Decodable {
      let tcId: Int
      let seed, ek, c, K: Hex?
      let result: String
    }
    let tests: [Case]
  }

  @Test func mlkem768_keyGeneration_platform() throws {
    guard let groups = try PublishedVectors.wycheproof("mlkem_768_keygen_seed", MLKEMGroup.self) else { return }
    var executed = 0
    for test in groups.flatMap(\.tests) {
      let seed = try #require(test.seed).bytes
      let key = try MLKEM768.PrivateKey(seedRepresentation: seed, publicKey: nil)
      #expect(Array(key.publicKey.rawRepresentation) == test.ek?.bytes, "case \(test.tcId)")
      executed += 1
    }
    #expect(executed == 100)
  }

  /// The API offers no encapsulation with given randomness, so valid keys are only shown to be accepted. Each key is
  /// also tried as the first part of an X-Wing key, where our wrapper must refuse the malformed ones.
  @Test func mlkem768_encapsulation_malformedKeysAreRefusedByOurWrap() throws {
    guard let groups = try PublishedVectors.wycheproof("mlkem_768_encaps", MLKEMGroup.self) else { return }
    let point = Curve25519.KeyAgreement.PrivateKey().publicKey.rawRepresentation
    var executed = 0
    for test in groups.flatMap(\.tests) {
      let ek = try #require(test.ek).bytes
      let secret = try? MLKEM768.PublicKey(rawRepresentation: ek).encapsulate()
      #expect((secret != nil) == (test.result == "valid"), "case \(test.tcId)")
      let wrap = try? Wrap.wrap(to: ek + point, label: "grant", context: [], plaintext: [1])
      #expect((wrap != nil) == (test.result == "valid"), "case \(test.tcId)")
      executed += 1
    }
    #expect(executed == 265)
  }

  @Test func mlkem768_decapsulation_platform() throws {
    guard let groups = try PublishedVectors.wycheproof("mlkem_768", MLKEMGroup.self) else { return }
    var executed = 0
    for test in groups.flatMap(\.tests) {
      let (seed, ciphertext) = (try #require(test.seed).bytes, try #require(test.c).bytes)
      let secret = try? MLKEM768.PrivateKey(seedRepresentation: seed, publicKey: nil).decapsulate(ciphertext)
      let shared = secret?.withUnsafeBytes { Array($0) }
      #expect(shared == (test.result == "valid" ? test.K?.bytes : nil), "case \(test.tcId)")
      executed += 1
    }
    #expect(executed == 193)
  }
}
