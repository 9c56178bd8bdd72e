import Foundation
import Testing
import ZeroDarkCloudTesting

@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// Imports that fail: the app gets an error that it can name, and no file remains.
@Suite struct DiskImportErrorTests {
  /// - a file grows while it is imported
  /// - a file disappears before it is imported
  @Test func aFileThatChangesDuringTheImport_isRefused() async throws {
    let folder = try TemporaryFolder()
    let source = folder.url.appendingPathComponent("source")
    try Data("milk".utf8).write(to: source)
    let grow: @Sendable (DiskStep) throws -> Void = { step in
      if step == .fileBegun { try Data("milk and bread".utf8).write(to: source) }
    }
    try await DiskFixture.run(onStep: grow) { fixture in
      let diskImport = ZDCDiskImport(cleartextFileURL: source)
      #expect(zdcCode { try fixture.disk.importNodeData(diskImport, for: fixture.nodes[0]) } == .fileModifiedDuringRead)
      try FileManager.default.removeItem(at: source)
      #expect(zdcCode { try fixture.disk.importNodeData(diskImport, for: fixture.nodes[0]) } == .fileFailure)
      #expect(!fixture.disk.hasNodeData(fixture.nodes[0].uuid))
    }
  }
}
