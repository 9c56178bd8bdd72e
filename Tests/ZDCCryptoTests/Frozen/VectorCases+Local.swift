import ZDCProtocol

@testable import ZDCCrypto

extension VectorCases {
  mutating func addLocal() throws {
    var source = SeededSource("zdc1 vectors local")
    let key = DatabaseKey.random(&source)
    let file = try KeyFile.seal(key, passphrase: "correct horse é", random: &source)
    func members(_ file: [UInt8], _ passphrase: String = "correct horse é") -> [String: VectorValue] {
      ["file": VectorValue(file), "passphrase": VectorValue(passphrase.utf8)]
    }
    add(
      "key-file", "key-file", "a database key under a pass-phrase",
      members(file).merging(["key": VectorValue(key.exportBytes())]) { $1 })
    add(
      "key-file-passphrase", "key-file", "another pass-phrase", expect: "authenticationFailure",
      members(file, "correct horse e"))
    add(
      "key-file-flip", "key-file", "a flipped bit in the salt", expect: "authenticationFailure",
      members(file.flipping(bit: 20 * 8)))
    var weak = file
    weak[6] = 1
    add("key-file-weak", "key-file", "cost lowered to N = 2", expect: .kdfParametersTooWeak, members(weak))
    var absurd = file
    absurd[6] = 60
    add("key-file-absurd", "key-file", "cost raised to N = 2^60", expect: .limitExceeded, members(absurd))
    add("key-file-trailing", "key-file", "a byte too many", expect: .nonCanonicalEncoding, members(file + [0]))
  }
}
