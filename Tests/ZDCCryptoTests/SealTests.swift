import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct SealTests {
  private let key = RecordKey.random()

  @Test(arguments: [0, 1, 16_383, 16_384, 16_385, 32_768, 40_000])
  func everyLengthComesBack(count: Int) throws {
    let plaintext = pattern(count)
    let sealed = try Seal.seal(key: key, label: "record", context: [1], plaintext)
    #expect(UInt64(sealed.count) == ContentGeometry.sealedLength(of: UInt64(count)))
    #expect(try Seal.open(key: key, label: "record", context: [1], sealed) == plaintext)
  }

  @Test func everySingleFlippedBitIsAnError() throws {
    let sealed = try Seal.seal(key: key, label: "record", context: [1], pattern(40))
    for bit in 0..<sealed.count * 8 {
      let code = try securityCode {
        _ = try Seal.open(key: key, label: "record", context: [1], sealed.flipping(bit: bit))
      }
      // Salt and commitment are checked before any chunk is tried.
      #expect(code == (bit < 56 * 8 ? .commitmentMismatch : .chunkAuthFailed))
    }
  }

  @Test func everyTruncationIsAnError() throws {
    let sealed = try Seal.seal(key: key, label: "record", context: [1], pattern(20))
    for count in 0..<sealed.count {
      let code = try securityCode {
        _ = try Seal.open(key: key, label: "record", context: [1], sealed.prefix(count))
      }
      #expect(code == (count < 72 ? .contentTruncated : .chunkAuthFailed))
    }
  }

  @Test func trailingBytesAreAnError() throws {
    let sealed = try Seal.seal(key: key, label: "record", context: [1], pattern(20))
    #expect(
      try securityCode { _ = try Seal.open(key: key, label: "record", context: [1], sealed + [0]) } == .chunkAuthFailed)
  }

  @Test func otherKeyLabelOrContextFailsAtTheCommitment() throws {
    let sealed = try Seal.seal(key: key, label: "record", context: [1], [7])
    let attempts: [() throws -> [UInt8]] = [
      { try Seal.open(key: RecordKey.random(), label: "record", context: [1], sealed) },
      { try Seal.open(key: key, label: "old-keys", context: [1], sealed) },
      { try Seal.open(key: key, label: "record", context: [2], sealed) },
      { try Seal.open(key: key, label: "record", context: [], sealed) },
    ]
    for attempt in attempts {
      #expect(try securityCode { _ = try attempt() } == .commitmentMismatch)
    }
  }

  @Test func twoSealsShareNoBlock() throws {
    let first = try Seal.seal(key: key, label: "record", context: [], pattern(256))
    let second = try Seal.seal(key: key, label: "record", context: [], pattern(256))
    #expect(Set(blocks(first)).isDisjoint(with: blocks(second)))
  }

  private func blocks(_ bytes: [UInt8]) -> [[UInt8]] {
    stride(from: 0, to: bytes.count - 15, by: 16).map { Array(bytes[$0..<$0 + 16]) }
  }

  @Test func wrapOpensForItsKeyLabelAndContextOnly() throws {
    let recipient = try DecryptionKey.random()
    let wrapped = try Wrap.wrap(to: recipient.publicKey, label: "grant", context: [1], plaintext: pattern(32))
    #expect(wrapped.count == 32 + Wrap.overhead)
    #expect(try recipient.unwrap(label: "grant", context: [1], wrapped) == pattern(32))
    let other = try DecryptionKey.random()
    #expect(throws: CryptoFailure.authenticationFailure) { try other.unwrap(label: "grant", context: [1], wrapped) }
    #expect(throws: CryptoFailure.authenticationFailure) { try recipient.unwrap(label: "link", context: [1], wrapped) }
    #expect(throws: CryptoFailure.authenticationFailure) { try recipient.unwrap(label: "grant", context: [2], wrapped) }
    #expect(throws: CryptoFailure.authenticationFailure) {
      try recipient.unwrap(label: "grant", context: [1], wrapped.dropLast())
    }
    #expect(throws: CryptoFailure.authenticationFailure) {
      try recipient.unwrap(label: "grant", context: [1], wrapped.prefix(1_135))
    }
  }

  @Test func flippedBitsInAWrapAreErrors() throws {
    let recipient = try DecryptionKey.random()
    let wrapped = try Wrap.wrap(to: recipient.publicKey, label: "grant", context: [], plaintext: pattern(32))
    for bit in stride(from: 3, to: wrapped.count * 8, by: 97) {
      #expect(throws: CryptoFailure.authenticationFailure) {
        try recipient.unwrap(label: "grant", context: [], wrapped.flipping(bit: bit))
      }
    }
  }

  @Test func malformedPublicKeysAreRefused() throws {
    for key in [[], [UInt8](repeating: 0xFF, count: 1_216), [UInt8](repeating: 1, count: 1_215)] as [[UInt8]] {
      #expect(
        try securityCode { _ = try Wrap.wrap(to: key, label: "grant", context: [], plaintext: [1]) } == .weakPublicKey)
    }
  }
}
