import Crypto
import Testing
import ZDCProtocol

@Suite struct SignaturesTests {
  private func bytes(_ hexadecimal: String) -> [UInt8] {
    stride(from: 0, to: hexadecimal.utf8.count, by: 2).compactMap { offset in
      UInt8(hexadecimal.dropFirst(offset).prefix(2), radix: 16)
    }
  }

  /// The key has a component of order 8, the message is "mixed order" under the label "commit": multiplied by the
  /// cofactor, both sides of the equation are equal; without it they are not.
  @Test("B23: signatures are verified without the cofactor")
  func mixedOrderKey() {
    let key = bytes("5870d2a3137db534a55613f63a31eda3aee89e0e3d21f4068c2c56456dd38cb6")
    let signature = bytes(
      "f15604749b24c5f6bfa4497da3292a04c4a80f2145caf962bc1b39b20277667e"
        + "509a5e8dff2499f0edbacfefcbb908fa479e3971c8ec11684f361e82a387890d")
    #expect(!Signatures.isWeak(key))
    #expect(!Signatures.isValid(signature, by: key, label: "commit", message: Array("mixed order".utf8)))
  }

  @Test(arguments: [
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
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "00", "",
  ])
  func pointsOfSmallOrderAndSecondSpellingsAreWeak(key: String) {
    #expect(Signatures.isWeak(bytes(key)))
    let signature = [UInt8](repeating: 0, count: 64)
    #expect(!Signatures.isValid(signature, by: bytes(key), label: "link", message: [1]))
  }

  @Test func honestKeysAreNotWeak() {
    for _ in 0..<50 { #expect(!Signatures.isWeak(Curve25519.Signing.PrivateKey().publicBytes)) }
  }

  @Test func aSignatureHoldsForItsLabelMessageAndKeyOnly() throws {
    let key = Curve25519.Signing.PrivateKey()
    let signature = try key.sign("commit", [1, 2, 3])
    func isValid(_ signature: [UInt8], _ label: StaticString = "commit", _ message: [UInt8] = [1, 2, 3]) -> Bool {
      Signatures.isValid(signature, by: key.publicBytes, label: label, message: message)
    }
    #expect(isValid(signature))
    #expect(!isValid(signature, "login"))
    #expect(!isValid(signature, "commit", [1, 2, 4]))
    #expect(!isValid(Array(signature.dropLast())))
    #expect(!isValid(signature + [0]))
    #expect(!isValid([]))
    let other = Curve25519.Signing.PrivateKey()
    #expect(!Signatures.isValid(signature, by: other.publicBytes, label: "commit", message: [1, 2, 3]))
  }
}
