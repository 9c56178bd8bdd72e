import Foundation
import Testing

@testable import ZDCServerSQLite

@Suite struct OpenFileTests {
  /// - another thread has forked, and its child has not yet run its program: it shares all open files and their locks
  /// => the next opener can lock a file that was closed
  @Test func aClosedFileIsUnlocked_whileAForkedChildHasItOpen() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    defer { unlink(path) }
    var file: OpenFile? = try OpenFile(path, .create)
    #expect(file?.lock() == true)
    let ofChild = dup(try #require(file?.descriptor))
    defer { close(ofChild) }
    #expect(try !OpenFile(path, .create).lock())
    file = nil
    #expect(try OpenFile(path, .create).lock())
  }
}
