import Testing
import ZDCProtocol

@Suite struct IdentifierTests {
  @Test(
    arguments: [
      ([UInt8]([]), ""), ([0x00], "yy"), ([0xff], "9h"), ([0xf0, 0xbf, 0xc7], "6n9hq"), ([0xd4, 0x7a, 0x04], "4t7ye"),
    ] as [([UInt8], String)])
  func zBase32OfKnownBytes(bytes: [UInt8], text: String) {
    #expect(ZBase32.encode(bytes) == text)
    #expect(ZBase32.decode(text) == bytes)
  }

  @Test func zBase32OfEveryLengthComesBack() {
    var generator = SeededGenerator(seed: 1)
    for count in 0...70 {
      let bytes = generator.bytes(count)
      let text = ZBase32.encode(bytes)
      #expect(text.utf8.count == (count * 8 + 4) / 5)
      #expect(ZBase32.decode(text) == bytes)
      #expect(ZBase32.decode(text, byteCount: count + 1) == nil)
    }
  }

  @Test(arguments: ["y", "yyy", "yyyyyy", "YY", "y y", "yl", "y0", "yv", "y2", "yé", "9e", "yo"])
  func zBase32RefusesWhatItWouldNotWrite(text: String) {
    if let bytes = ZBase32.decode(text) { #expect(ZBase32.encode(bytes) == text) }
    #expect(NodeID(text: text) == nil)
  }

  @Test func anAcceptedTextIsTheOnlyOneOfItsBytes() {
    var generator = SeededGenerator(seed: 2)
    let alphabet = Array("ybndrfg8ejkmcpqxot1uwisza345h769")
    for _ in 0..<2_000 {
      let length = Int.random(in: 0...30, using: &generator)
      let text = String((0..<length).map { _ in alphabet[Int.random(in: 0..<32, using: &generator)] })
      if let bytes = ZBase32.decode(text) { #expect(ZBase32.encode(bytes) == text) }
    }
  }

  @Test func idsKeepTheirBytesAndSortByThem() {
    var generator = SeededGenerator(seed: 3)
    for _ in 0..<200 {
      let (a, b) = (generator.bytes(16), generator.bytes(32))
      let (c, d) = (generator.bytes(16), generator.bytes(32))
      #expect(NodeID(a)?.bytes == a)
      #expect(UserID(b)?.bytes == b)
      #expect(NodeID(a).map { NodeID(text: $0.text) } == NodeID(a))
      #expect(UserID(b).map { UserID(text: $0.text) } == UserID(b))
      #expect((NodeID(a)! < NodeID(c)!) == a.lexicographicallyPrecedes(c))
      #expect((UserID(b)! < UserID(d)!) == b.lexicographicallyPrecedes(d))
    }
  }

  @Test func idsOfAnotherLengthAreNil() {
    for count in [0, 15, 17, 31, 33] {
      #expect(NodeID([UInt8](repeating: 1, count: count)) == nil)
      #expect(UserID([UInt8](repeating: 1, count: count)) == nil)
    }
    #expect(NodeID(text: String(repeating: "y", count: 27)) == nil)
    #expect(UserID(text: String(repeating: "y", count: 51)) == nil)
  }

  @Test func idsPrintAsHexadecimalAndFoldIntoEachOther() throws {
    let user = try #require(UserID(Array(0..<32)))
    #expect(user.description == "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
    #expect(NodeID(prefixOf: user).description == "000102030405060708090a0b0c0d0e0f")
    #expect(TreeID(reinterpreting: user).bytes == user.bytes)
    #expect(UserID.zero.bytes == [UInt8](repeating: 0, count: 32))
    #expect(NodeID.zero.bytes == [UInt8](repeating: 0, count: 16))
    #expect(Set([user, user]).count == 1)
    #expect(Set((0..<100).map { _ in NodeID.random() }).count == 100)
  }

  @Test func zonesSortByTreeThenRoot() {
    var generator = SeededGenerator(seed: 4)
    let tree: TreeID = Samples.id32(&generator)
    let (low, high) = (NodeID(high: 0, low: 1), NodeID(high: 1, low: 0))
    #expect(ZoneID(tree: tree, root: low) < ZoneID(tree: tree, root: high))
    #expect(ZoneID(tree: .zero, root: high) < ZoneID(tree: tree, root: low))
  }

  @Test func decimalDigitsAreTheLastOnesOfABigEndianNumber() {
    #expect(([0, 0, 0, 0, 5] as ArraySlice).decimalDigits(5) == "00005")
    #expect(([1, 0, 0, 0, 0] as ArraySlice).decimalDigits(5) == "67296")
    #expect(ArraySlice(repeating: 255, count: 8).decimalDigits(6) == "551615")
  }
}

@Suite struct ErrorTests {
  @Test func anErrorGathersIdsOnItsWayUpAndKeepsTheFirst() {
    let (near, far) = (NodeID(high: 1, low: 1), NodeID(high: 2, low: 2))
    let zone = ZoneID(tree: .zero, root: far)
    let error = ZDCSecurityError(.recordRollback, node: near).with(zone: zone, node: far, user: .zero)
    #expect(error == ZDCSecurityError(.recordRollback, zone: zone, node: near, user: .zero))
    let ids = "zone=\(zone.tree.text)/\(far.text) node=\(near.text) user=\(UserID.zero.text)"
    #expect(error.description == "\(error.code.explanation) (recordRollback \(ids))")
    #expect(ZDCSecurityError(.logStale).description == "the transparency log is out of date (logStale)")
  }

  @Test func requireThrowsOnlyWhenTheRuleIsBroken() {
    #expect(refusal { try require(true, .treeCycle) } == nil)
    #expect(refusal { try require(false, .treeCycle) } == .treeCycle)
  }
}
