import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct SecretKeyTests {
  @Test func onlyThirtyTwoBytesAreAKey() {
    for count in [0, 16, 31, 33, 64] {
      #expect(NodeKey([UInt8](repeating: 1, count: count)) == nil)
      #expect(AccessKey([UInt8](repeating: 1, count: count)) == nil)
    }
    #expect(NodeKey([UInt8](repeating: 1, count: 32)) != nil)
  }

  @Test func randomBytesOfAnyCountAreAllFilled() {
    let source = SystemRandomSource()
    #expect(source.bytes(0).isEmpty)
    for count in [1, 24, 32, 255, 256, 257, 1_000] {
      let samples = (0..<40).map { _ in source.bytes(count) }
      #expect(samples.allSatisfy { $0.count == count })
      // Each position varies: the probability of forty equal bytes is 2^-312.
      #expect((0..<count).allSatisfy { index in Set(samples.map { $0[index] }).count > 1 })
    }
  }

  @Test func nothingSecretIsPrinted() throws {
    let bytes = [UInt8](repeating: 0xAB, count: 32)
    let access = try #require(AccessKey(bytes))
    let node = try #require(NodeKey(bytes))
    let signing = SigningKey(seed: try #require(SigningSeed(bytes)))
    let decryption = try DecryptionKey(seed: try #require(DecryptionSeed(bytes)))
    let entry = Keyring.Entry(signing: signing, gen: 1, status: .current, createdMs: 0)
    let keyring = Keyring(version: 1, user: .zero, entries: [entry])
    let secrets = RecordPrivate(name: try FoldedName("canary"), createdMs: 0)
    let values: [Any] = [access, node, signing, decryption, entry, keyring, secrets, node.childKey]
    for value in values {
      var dumped = ""
      dump(value, to: &dumped)
      for text in ["\(value)", String(reflecting: value), dumped] {
        let lower = text.lowercased()
        #expect(!lower.contains("abab") && !lower.contains("171") && !lower.contains("canary"), "\(text)")
      }
    }
  }

  @Test func eachRoleOfANodeKeyIsAnotherKey() {
    let key = NodeKey.random()
    let derived = [
      key.exportBytes(), key.contentCapability.exportBytes(), key.childKey.exportBytes(), key.nameKey.exportBytes(),
      key.historyKey.exportBytes(), key.contentCapability.recordKey.exportBytes(), key.commitments.node.bytes,
      key.commitments.content.bytes,
    ]
    #expect(Set(derived).count == derived.count)
  }

  @Test func aSignatureCountsUnderItsLabelOnly() throws {
    let key = SigningKey.random()
    let signature = try key.sign(label: "commit", message: [1, 2, 3])
    #expect(Signatures.isValid(signature, by: key.publicKey, label: "commit", message: [1, 2, 3]))
    #expect(!Signatures.isValid(signature, by: key.publicKey, label: "acl", message: [1, 2, 3]))
    #expect(!Signatures.isValid(signature, by: key.publicKey, label: "commit", message: [1, 2, 4]))
  }

  /// The eight small-order points in all encodings, and a y above the field's prime.
  @Test func weakVerificationKeysAreRefused() throws {
    let points = [
      "0000000000000000000000000000000000000000000000000000000000000000",
      "0000000000000000000000000000000000000000000000000000000000000080",
      "0100000000000000000000000000000000000000000000000000000000000000",
      "0100000000000000000000000000000000000000000000000000000000000080",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ]
    for point in points { #expect(Signatures.isWeak(try #require([UInt8](hex: point))), "\(point)") }
    #expect(Signatures.isWeak([]))
    for _ in 0..<100 { #expect(!Signatures.isWeak(SigningKey.random().publicKey)) }
    // R = the neutral element, S = 0: valid for every message under a small-order key in libraries that do not check.
    let signature = [1] + [UInt8](repeating: 0, count: 63)
    #expect(!Signatures.isValid(signature, by: try #require([UInt8](hex: points[2])), signed: [1, 2, 3]))
  }

  @Test func keysAreEqualByTheirSeed() throws {
    let signing = SigningKey.random()
    #expect(SigningKey(seed: signing.seed) == signing)
    #expect(SigningKey.random() != signing)
    let decryption = try DecryptionKey.random()
    #expect(try DecryptionKey(seed: decryption.seed) == decryption)
    #expect(try DecryptionKey.random() != decryption)
  }

  @Test func failuresSayNothingButTheirKind() {
    let all: [CryptoFailure] = [
      .authenticationFailure, .malformed, .sourceChanged, .invalidParameter, .platformFailure,
    ]
    #expect(Set(all.map(\.description)).count == all.count)
  }
}
