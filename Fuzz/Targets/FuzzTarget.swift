/// A decoder, or a few related ones, and the promises that must hold for any input (SECURITY.md, "Fuzzing").
package struct FuzzTarget: Sendable {
  /// The name that `make fuzz TARGET=` takes.
  package let name: String
  /// The length above which inputs find nothing new.
  package let longest: Int
  /// Decodes the bytes. A refusal is a good outcome; a broken promise is thrown as ``FuzzFinding``; a trap ends the
  /// process.
  package let run: @Sendable ([UInt8]) throws -> Void

  package static let all: [FuzzTarget] = objects + sequences + secrets + texts + [zoneHistory]

  package static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }

  init(_ name: String, longest: Int = 8 << 10, _ run: @escaping @Sendable ([UInt8]) throws -> Void) {
    self.name = name
    self.longest = longest
    self.run = run
  }
}

/// A promise that some input broke.
package struct FuzzFinding: Error, CustomStringConvertible {
  package let description: String

  static func require(_ condition: Bool, _ promise: String) throws {
    guard condition else { throw FuzzFinding(description: promise) }
  }
}
