import Foundation
import Testing
import ZDCProtocol

@testable import ZDCCrypto

/// Our own known-answer vectors, one file per case, read by two implementations (the other is `Tools/zdccheck.py`).
///
/// `ZDC_WRITE_VECTORS=1` writes the folder again. Any changed byte is a change of the protocol.
@Suite(.serialized) struct FrozenVectorTests {
  private static let isWriting = ProcessInfo.processInfo.environment["ZDC_WRITE_VECTORS"] == "1"

  /// Created by the independent reader; only opened here.
  private static func isForeign(_ vector: Vector) -> Bool { vector.name.hasPrefix("python-") }

  @Test func writeIfAsked() throws {
    guard Self.isWriting else { return }
    let cases = try VectorCases.all()
    let names = Set(cases.map(\.name))
    for stored in try Vector.stored() where !names.contains(stored.name) && !Self.isForeign(stored) {
      try FileManager.default.removeItem(at: Vector.url(stored.name))
    }
    for vector in cases { try Data(vector.text.utf8).write(to: Vector.url(vector.name)) }
  }

  @Test func everyFileIsMadeAgainByteForByte() throws {
    // NB: CryptoKit's Ed25519 signatures are randomized, so with CryptoKit the files are only opened.
    #if !canImport(CryptoKit)
      let cases = try VectorCases.all()
      let names = cases.map(\.name)
      #expect(Set(names).count == names.count)
      for vector in cases {
        let stored = try String(contentsOf: Vector.url(vector.name), encoding: .utf8)
        #expect(stored == vector.text, "\(vector.name)")
      }
      #expect(Set(try Vector.stored().filter { !Self.isForeign($0) }.map(\.name)) == Set(names))
    #endif
  }

  @Test func everyFileOpensOrFailsAsItSays() throws {
    let stored = try Vector.stored()
    for vector in stored {
      #expect(try VectorOpening(vector: vector).outcome() == vector.string("expect"), "\(vector.name)")
    }
    #expect(stored.count >= 100)
    #expect(stored.filter(Self.isForeign).count == 4)
  }

  /// `Tools/zdccheck.py mutate` refuses the same copies with the same errors.
  @Test func aFlippedBitInACopyOfASharedTree_isNoticed() throws {
    let tree = try Vector(contentsOf: Vector.url("tree"))
    try TreeReading(tree).open()
    var source = SeededSource("zdc1 mutations")
    var refusals: [String: VectorValue] = [:]
    for number in 0..<1_000 {
      let bit = Int(source.next() % UInt64(tree.servedBitCount))
      let altered = tree.flippingServed(bit: bit)
      let error = #expect(throws: ZDCSecurityError.self, "copy \(number), bit \(bit)") {
        try TreeReading(altered).open()
      }
      guard let code = error?.code.rawValue else { continue }
      if case .number(let count)? = refusals[code] { refusals[code] = .number(count + 1) } else { refusals[code] = 1 }
    }
    #expect(VectorValue.object(refusals) == tree["refusals"])
  }
}
