import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct DeviceLinkTests {
  private let key: DecryptionKey
  private let code: DeviceLinkCode
  private let answer: DeviceLinkAnswer

  init() throws {
    key = try DecryptionKey.random()
    code = DeviceLinkCode(id: .random(), publicKey: key.publicKey)
    let head = VerifiedHead(
      zone: ZoneID(tree: Bytes32(labelledHash: "a"), root: .random()), seq: 7,
      hash: Bytes32(labelledHash: "b"))
    answer = DeviceLinkAnswer(
      accessKey: .random(), user: Bytes32(labelledHash: "c"), chainSeq: 3, chainHash: Bytes32(labelledHash: "d"),
      heads: [head, head])
  }

  @Test func aSealedAnswerOpensAsItWas() throws {
    let sealed = try answer.seal(to: key.publicKey, code: code)
    #expect(try DeviceLinkAnswer(opening: sealed, key: key, code: code) == answer)
    #expect(DeviceLinkCode(code.text) == code)
  }

  @Test func anAnswerOpensOnlyWithTheKeyAndForTheCode() throws {
    let sealed = try answer.seal(to: key.publicKey, code: code)
    let other = DeviceLinkCode(id: .random(), publicKey: key.publicKey)
    let stranger = try DecryptionKey.random()
    #expect(throws: ZDCSecurityError(.messageAuthFailed)) {
      try DeviceLinkAnswer(opening: sealed, key: key, code: other)
    }
    #expect(throws: ZDCSecurityError(.messageAuthFailed)) {
      try DeviceLinkAnswer(opening: sealed, key: stranger, code: code)
    }
    #expect(throws: ZDCSecurityError(.keyCommitmentMismatch)) { try answer.seal(to: stranger.publicKey, code: code) }
    for place in stride(from: 0, to: sealed.count, by: 97) {
      var garbled = sealed
      garbled[place] ^= 1
      #expect(throws: ZDCSecurityError(.messageAuthFailed)) {
        try DeviceLinkAnswer(opening: garbled, key: key, code: code)
      }
    }
  }

  @Test func anotherFormOfTheContentIsRefused() throws {
    let plain = Array("ZDLK".utf8) + [1, 1] + [UInt8](repeating: 7, count: 32 + 32 + 4 + 32)
    let forms: [([UInt8], ZDCSecurityError.Code)] = [
      (plain + [0, 0, 0], .nonCanonicalEncoding), (plain + [0, 1], .nonCanonicalEncoding),
      (plain + [1, 1], .limitExceeded), (Array("ZDLK".utf8) + [2, 1], .unsupportedVersion), ([], .nonCanonicalEncoding),
    ]
    for (bytes, expected) in forms {
      let context = code.id.bytes + code.keyHash.bytes
      let sealed = try Wrap.wrap(to: key.publicKey, label: "device-link", context: context, plaintext: bytes)
      #expect(throws: ZDCSecurityError(expected)) { try DeviceLinkAnswer(opening: sealed, key: key, code: code) }
    }
  }

  @Test func theDigitsDependOnDeviceAndAccount() throws {
    let (a, b): (UserID, UserID) = (Bytes32(labelledHash: "a"), Bytes32(labelledHash: "b"))
    let digits = code.digits(publicKey: key.publicKey, user: a)
    #expect(digits.count == 6 && digits.allSatisfy(\.isNumber))
    let others = (0..<20).map { _ in
      DeviceLinkCode(id: .random(), publicKey: key.publicKey).digits(publicKey: key.publicKey, user: a)
    }
    #expect(Set(others + [digits, code.digits(publicKey: key.publicKey, user: b)]).count > 15)
  }
}
