import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A node travels from an app's transaction on one device to the delegate of another, through the real server.
struct EndToEndTests {
  @Test func nodeWithContent_arrivesOnTheOtherDevice() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/notes", "all of them")
      try await a.create("/notes/todo", "milk")
      try await a.sync()
      try await b.sync()
      #expect(b.recorder.take() == ["new /notes", "new /notes/todo"])
      #expect(try await b.tree() == "/notes  v1  ?\n/notes/todo  v1  ?")
      try await b.download()
      #expect(try await b.tree() == "/notes  v1  \"all of them\"\n/notes/todo  v1  \"milk\"")
      #expect(try await a.tree() == (try await b.tree()))
      #expect(a.recorder.take() == ["data /notes", "data /notes/todo", "pushed /notes", "pushed /notes/todo"])
    }
  }

  @Test func serverShowsShapeAndSizes_neverNames() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/notes")
      try await a.create("/notes/todo", "milk")
      try await a.create("/other")
      try await a.sync()
      try await a.edit("/notes/todo", "milk and bread")
      try await a.sync()
      let dump = try world.server.dump()
      #expect(
        dump == """
          account 1: 1 devices
            home: seq 2, 3 nodes
              n1 v1, content 136
                n2 v2, content 152
              n3 v1, content 136
          """)
    }
  }

  /// Sizes around every boundary: nothing, one byte, one chunk, inline or file, several parts' worth of leaves.
  @Test(arguments: [0, 1, 300, 65_535, 65_536, 65_537, 5 << 20])
  func contentOfAnySize_withMetadataAndThumbnail_comesBackEqual(size: Int) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let content = TestContent(
        data: Self.bytes(size, seed: 1), metadata: Self.bytes(200, seed: 2), thumbnail: Self.bytes(3_000, seed: 3))
      let node = try await a.create(
        "/film", TestContent(data: Data(), metadata: content.metadata, thumbnail: content.thumbnail))
      a.recorder.serve(ZDCData(data: content.data), forNodeID: node.uuid)
      try await a.sync()
      #expect(a.recorder.lines.filter { $0 == "pushed /film" }.count == 1)
      try await b.pull()
      let info = try #require(try await b.node("/film").cloudDataInfo)
      #expect([info.dataSize, info.metadataSize, info.thumbnailSize] == [UInt64(size), 200, 3_000])
      let (_, file) = try await #require(try b.zdc.downloadManager).downloadNodeData(b.node("/film"))
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == content.data)
      #expect(try ZDCFileConversion.decryptMetadata(of: file) == content.metadata)
      #expect(try ZDCFileConversion.decryptThumbnail(of: file) == content.thumbnail)
    }
  }

  @Test func largeContent_fromAFile_isReadWhenItIsSent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let folder = try TemporaryFolder()
      let url = folder.url.appendingPathComponent("film")
      try Self.bytes(10, seed: 1).write(to: url)
      let node = try await a.create("/film")
      a.recorder.serve(ZDCData(cleartextFileURL: url), forNodeID: node.uuid)
      let newest = Self.bytes(200_000, seed: 7)
      try newest.write(to: url)
      try await a.sync()
      try await b.pull()
      try await b.download()
      #expect(try await b.content(of: "/film")?.data == newest)
    }
  }

  @Test func namesThatDifferInFormOnly_areTheSameName() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/caf\u{e9}", "one")
      await #expect(throws: ZDCCloudError.self) { try await a.create("/cafe\u{301}", "two") }
      try await a.create("/CAF\u{c9}", "another case is another name")
      try await a.create("/a\\/b", "a slash in a name")
      try await world.settle(a, b)
      #expect(
        try await b.tree(versions: false) == """
          /CAF\u{c9}  "another case is another name"
          /a\\/b  "a slash in a name"
          /caf\u{e9}  "one"
          """)
    }
  }

  @Test func everyChange_inTurn_arrives() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/d")
      try await a.create("/f", "1")
      try await world.settle(a, b)
      _ = b.recorder.take()
      try await a.rename("/f", to: "g")
      try await a.sync()
      try await b.sync()
      try await a.move("/g", to: "/d/g")
      try await a.sync()
      try await b.sync()
      try await a.edit("/d/g", "2")
      try await a.sync()
      try await b.sync()
      try await a.delete("/d")
      try await a.sync()
      try await b.sync()
      #expect(b.recorder.take() == ["moved /f -> /g", "moved /g -> /d/g", "modified data /d/g", "deleted /d"])
      #expect(try await b.tree() == "")
    }
  }

  static func bytes(_ count: Int, seed: UInt8) -> Data {
    var value = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1
    // A number for each byte would take seconds for large files, because tests are not optimized.
    var block = Data(capacity: 4_096)
    while block.count < 4_096 {
      value ^= value << 13
      value ^= value >> 7
      value ^= value << 17
      withUnsafeBytes(of: value.littleEndian) { block.append(contentsOf: $0) }
    }
    var data = Data(capacity: count + block.count)
    var number: UInt64 = 0
    while data.count < count {
      withUnsafeBytes(of: (value &+ number).littleEndian) { block.replaceSubrange(0..<8, with: $0) }
      data.append(block)
      number += 1
    }
    return data.prefix(count)
  }
}
