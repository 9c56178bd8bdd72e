#if os(Linux)
  import Foundation
  import Testing

  /// A record cannot be a class, because a copy of it would be the same object. The compiler refuses it.
  struct ClassRecordTests {
    /// Returns the compiler's messages for a file that imports ZDCMerge; empty if it compiles.
    private func diagnostics(_ source: String) throws -> String {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      let file = folder.appendingPathComponent("Record.swift")
      try Data(source.utf8).write(to: file)
      let products = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      let (compiler, output) = (Process(), Pipe())
      compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      compiler.arguments = [
        "swiftc", "-typecheck", "-swift-version", "6", "-module-cache-path", folder.path, "-I",
        products.appendingPathComponent("Modules").path, file.path,
      ]
      compiler.standardOutput = output
      compiler.standardError = output
      try compiler.run()
      let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      compiler.waitUntilExit()
      return compiler.terminationStatus == 0 ? "" : text
    }

    private func record(_ kind: String) -> String {
      """
      import ZDCMerge
      \(kind) Note: ZDCRecord {
        @Syncable var title = ""
        init() {}
        static var syncableFields: [ZDCField<Note>] { [ZDCField("title", \\._title)] }
      }
      """
    }

    @Test("X1: a record that is a class does not compile, and the message says why")
    func classRecord() throws {
      #expect(try diagnostics(record("struct")) == "")
      let refused = try diagnostics(
        record("final class").replacing("ZDCRecord {", with: "ZDCRecord, @unchecked Sendable {"))
      #expect(refused.contains("must be a struct"))
    }
  }
#endif
