import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct DeviceLinkTests {
  private let key: DecryptionKey
  private let offer: DeviceLinkOffer
  private let code: DeviceLinkCode
  private let answer: DeviceLinkAnswer

  init() throws {
    key = try DecryptionKey.random()
    offer = DeviceLinkOffer(publicKey: key.publicKey, nonce: DeviceLinkNonce(1, 2, 3, 4))
    code = DeviceLinkCode(id: .random(), offer: offer)
    let head = VerifiedHead(
      zone: ZoneID(tree: Bytes32(labelledHash: "a"), root: .random()), seq: 7,
      hash: Bytes32(labelledHash: "b"))
    answer = DeviceLinkAnswer(
      accessKey: .random(), user: Bytes32(labelledHash: "c"), chainSeq: 3, chainHash: Bytes32(labelledHash: "d"),
      heads: [head, head])
  }

  @Test func aSealedAnswerOpensAsItWas() throws {
    let sealed = try answer.seal(to: offer, code: code)
    #expect(try DeviceLinkAnswer(opening: sealed, key: key, code: code) == answer)
    #expect(DeviceLinkCode(code.text) == code)
  }

  @Test func anAnswerOpensOnlyWithTheKeyAndForTheCode() throws {
    let sealed = try answer.seal(to: offer, code: code)
    let other = DeviceLinkCode(id: .random(), offer: offer)
    let stranger = try DecryptionKey.random()
    #expect(throws: ZDCSecurityError(.messageAuthFailed)) {
      try DeviceLinkAnswer(opening: sealed, key: key, code: other)
    }
    #expect(throws: ZDCSecurityError(.messageAuthFailed)) {
      try DeviceLinkAnswer(opening: sealed, key: stranger, code: code)
    }
    for other in [
      DeviceLinkOffer(publicKey: stranger.publicKey, nonce: DeviceLinkNonce(1, 2, 3, 4)),
      DeviceLinkOffer(publicKey: key.publicKey, nonce: DeviceLinkNonce(1, 2, 3, 5)),
    ] {
      #expect(throws: ZDCSecurityError(.keyCommitmentMismatch)) { try answer.seal(to: other, code: code) }
    }
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
      let context = code.id.bytes + code.offerHash.bytes
      let sealed = try Wrap.wrap(to: key.publicKey, label: "device-link", context: context, plaintext: bytes)
      #expect(throws: ZDCSecurityError(expected)) { try DeviceLinkAnswer(opening: sealed, key: key, code: code) }
    }
  }

  @Test func anOfferFitsItsNonceOnly() throws {
    let copy = try DeviceLinkOffer(offer.bytes)
    #expect(copy == offer && offer.bytes.count == DeviceLinkOffer.byteCount)
    try copy.check(DeviceLinkNonce(1, 2, 3, 4))
    #expect(throws: ZDCSecurityError(.keyCommitmentMismatch)) { try copy.check(DeviceLinkNonce(1, 2, 3, 5)) }
    for bytes in [[], offer.bytes.dropLast(), offer.bytes + [0]] {
      #expect(throws: ZDCSecurityError(.keyCommitmentMismatch)) { try DeviceLinkOffer(bytes) }
    }
  }

  /// The numbers are fixed, and so are the digits.
  @Test func theDigitsDependOnLinkKeyNonceAndAccount() throws {
    let nonce = DeviceLinkNonce(1, 2, 3, 4)
    let key = [UInt8](repeating: 7, count: IdentityLink.encPubBytes)
    let other = [UInt8](repeating: 8, count: IdentityLink.encPubBytes)
    func digits(_ id: UInt64, _ key: [UInt8], _ nonce: DeviceLinkNonce, _ user: StaticString) -> String {
      let offer = DeviceLinkOffer(publicKey: key, nonce: nonce)
      return DeviceLinkCode(id: DeviceLinkID(high: 0, low: id), offer: offer)
        .digits(offer, nonce: nonce, user: Bytes32(labelledHash: user))
    }
    let all = [
      digits(1, key, nonce, "a"), digits(2, key, nonce, "a"), digits(1, other, nonce, "a"),
      digits(1, key, DeviceLinkNonce(1, 2, 3, 5), "a"), digits(1, key, nonce, "b"),
    ]
    #expect(Set(all).count == 5 && all.allSatisfy { $0.count == 6 && $0.allSatisfy(\.isNumber) })
    #expect(digits(1, key, nonce, "a") == all[0])
  }
}
