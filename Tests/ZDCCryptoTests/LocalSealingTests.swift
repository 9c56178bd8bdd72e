import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct LocalSealingTests {
  private let sealer = ValueSealer(key: .random())

  @Test func aValueOpensInItsTableRowAndColumnOnly() throws {
    let table = sealer.table("nodes")
    let sealed = try table.seal([1, 2, 3], row: [9], column: "name")
    #expect(sealed.count == 3 + TableSealer.overhead)
    #expect(try table.open(sealed, row: [9], column: "name") == [1, 2, 3])
    let wrong: [() throws -> [UInt8]] = [
      { try table.open(sealed, row: [8], column: "name") },
      { try table.open(sealed, row: [9], column: "tag") },
      { try table.open(sealed, row: [9]) },
      { try sealer.table("node").open(sealed, row: [9], column: "name") },
      { try ValueSealer(key: .random()).table("nodes").open(sealed, row: [9], column: "name") },
      { try table.open([], row: [9], column: "name") },
      { try table.open(sealed.prefix(27), row: [9], column: "name") },
    ]
    for attempt in wrong { #expect(throws: CryptoFailure.authenticationFailure) { try attempt() } }
  }

  @Test func everyFlippedBitIsAnError() throws {
    let sealed = try sealer.seal([1, 2, 3], table: "t", row: [])
    #expect(try sealer.open(sealed, table: "t", row: []) == [1, 2, 3])
    for bit in 0..<sealed.count * 8 {
      #expect(throws: CryptoFailure.authenticationFailure) {
        try sealer.open(sealed.flipping(bit: bit), table: "t", row: [])
      }
    }
  }

  @Test func equalValuesDoNotLookEqual() throws {
    #expect(try sealer.seal([1], table: "t", row: []) != sealer.seal([1], table: "t", row: []))
  }

  @Test func rowKeysDependOnTableAndOnWhereThePartsEnd() {
    let keys = [
      sealer.rowKey(table: "t", [1], [2, 3]), sealer.rowKey(table: "t", [1, 2], [3]),
      sealer.rowKey(table: "u", [1], [2, 3]), sealer.rowKey(table: "t", [1, 2, 3]),
      ValueSealer(key: .random()).rowKey(table: "t", [1], [2, 3]),
    ]
    #expect(Set(keys).count == keys.count)
    #expect(sealer.rowKey(table: "t", [1], [2, 3]) == keys[0])
  }

  @Test func aKeyFileOpensWithItsPassphraseHoweverItWasTyped() throws {
    let key = DatabaseKey.random()
    let file = try KeyFile.seal(key, passphrase: "caf\u{E9}")
    #expect(try KeyFile.open(file, passphrase: "cafe\u{301}") == key)
    #expect(throws: CryptoFailure.authenticationFailure) { try KeyFile.open(file, passphrase: "cafe") }
  }

  @Test func weakAbsurdAndForeignKeyFilesAreRefusedBeforeAnyWork() throws {
    func file(logN: UInt8, r: UInt32, p: UInt32) -> [UInt8] {
      var out = ByteWriter(magic: "ZDKF")
      out.append(logN)
      out.append(r)
      out.append(p)
      out.append(contentsOf: pattern(16))
      out.append32(pattern(104))
      return out.bytes
    }
    for (logN, r, p) in [(1, 8, 1), (16, 8, 1), (17, 7, 1), (17, 8, 0)] as [(UInt8, UInt32, UInt32)] {
      let code = try securityCode { _ = try KeyFile.open(file(logN: logN, r: r, p: p), passphrase: "x") }
      #expect(code == .kdfParametersTooWeak)
    }
    for (logN, r, p) in [(63, 8, 1), (17, .max, 1), (17, 8, .max)] as [(UInt8, UInt32, UInt32)] {
      let code = try securityCode { _ = try KeyFile.open(file(logN: logN, r: r, p: p), passphrase: "x") }
      #expect(code == .limitExceeded)
    }
    let good = file(logN: 17, r: 8, p: 1)
    #expect(try securityCode { _ = try KeyFile.open(good + [0], passphrase: "x") } == .nonCanonicalEncoding)
    #expect(try securityCode { _ = try KeyFile.open([], passphrase: "x") } == .nonCanonicalEncoding)
    var version = good
    version[4] = 2
    #expect(try securityCode { _ = try KeyFile.open(version, passphrase: "x") } == .unsupportedVersion)
  }

  @Test func anEmptyPassphraseIsRefused() {
    #expect(throws: CryptoFailure.invalidParameter) { try KeyFile.seal(.random(), passphrase: "") }
  }
}
