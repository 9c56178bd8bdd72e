import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZDCTreesystem

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// How nodes are stored in the database, and which facts are visible there without the key.
@Suite struct CloudStorageTests {
  /// Exact sizes and the thumbnail's tag are in the record's sealed part, so they are sealed here too.
  @Test func exactSizesAndThumbnailTag_areSealed() async throws {
    let fixture = try await CloudFixture()
    try await fixture.create("/f")
    let tag = ThumbnailTag.random()
    let sizes = ContentSizes(metadata: 12_345, thumbnail: 23_456, data: 7_654_321)
    try await fixture.write { cloud in
      var row = try cloud.row(path: "/f")
      row.content = NodeRow.RemoteContent(
        content: NodeRecord.Content(dataVersion: 2, blobID: .random(), cipherLength: 8_000_000, contentRoot: .zero),
        secrets: ContentSecrets(key: .random(), sizes: sizes, thumbnailTag: tag), writer: .zero, timeMs: 1,
        receivedMs: 2)
      try cloud.nodes.update(row)
    }
    let secrets: [DatabaseValue] = [12_345, 23_456, 7_654_321].map { (size: Int64) in size.databaseValue }
    let rows = try await fixture.read { cloud in
      try Row.fetchAll(cloud.transaction.database, sql: "SELECT * FROM zdc_node").map { Array($0.databaseValues) }
    }
    for value in rows.joined() {
      #expect(!secrets.contains(value))
      if case .blob(let data) = value.storage { #expect(data.range(of: Data(tag.bytes)) == nil) }
    }
    let read = try await fixture.read { try $0.row(path: "/f").content?.secrets }
    #expect(read?.sizes == sizes)
    #expect(read?.thumbnailTag == tag)
  }
}
