/// The code of a public error.
///
/// To apps it is a struct, so that a new code breaks none of their switches. Within the package it has an enum, so that
/// none of ours misses a code: switch over ``name``.
package protocol ErrorCode: Hashable, Sendable, CustomStringConvertible {
  /// The raw values are stable: they are on the wire, in tables, in vectors and in the output of commands.
  associatedtype Name: CaseIterable, Hashable, RawRepresentable<String>, Sendable

  var name: Name { get }

  init(_ name: Name)
}

extension ErrorCode {
  package static var allCases: [Self] { Name.allCases.map(Self.init) }

  package var rawValue: String { name.rawValue }

  /// - Returns: Nil for a name that this version does not know.
  package init?(rawValue: String) {
    guard let name = Name(rawValue: rawValue) else { return nil }
    self.init(name)
  }

  /// Decodes a name, and throws if this version does not know it.
  package static func decode(from decoder: any Decoder) throws -> Self {
    let container = try decoder.singleValueContainer()
    guard let code = Self(rawValue: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "unknown error code")
    }
    return code
  }

  package func encodeName(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rawValue)
  }
}
