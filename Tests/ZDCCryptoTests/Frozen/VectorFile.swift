import Foundation

/// A value of a vector file. The serializer is our own, so that the bytes of a file do not depend on a JSON library.
enum VectorValue: Equatable, Codable {
  case number(Int)
  case text(String)
  case list([VectorValue])
  case object([String: VectorValue])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let number = try? container.decode(Int.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([VectorValue].self) {
      self = .list(list)
    } else {
      self = .object(try container.decode([String: VectorValue].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    throw EncodingError.invalidValue(self, .init(codingPath: [], debugDescription: "use text"))
  }

  /// Returns JSON with sorted keys, one member per line.
  func text(indent: String = "") -> String {
    let inner = indent + "  "
    switch self {
    case .number(let number): return String(number)
    case .text(let text): return "\"\(text)\""
    case .list(let values):
      if values.isEmpty { return "[]" }
      return "[\n" + values.map { inner + $0.text(indent: inner) }.joined(separator: ",\n") + "\n\(indent)]"
    case .object(let members):
      let lines = members.sorted { $0.key < $1.key }.map { "\(inner)\"\($0.key)\": \($0.value.text(indent: inner))" }
      return "{\n" + lines.joined(separator: ",\n") + "\n\(indent)}"
    }
  }
}

extension VectorValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByDictionaryLiteral {
  init(stringLiteral value: String) { self = .text(value) }
  init(integerLiteral value: Int) { self = .number(value) }
  init(dictionaryLiteral elements: (String, VectorValue)...) {
    self = .object(Dictionary(uniqueKeysWithValues: elements))
  }

  init(_ bytes: some Sequence<UInt8>) {
    let digits = Array("0123456789abcdef")
    self = .text(String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }))
  }

  init(_ number: some BinaryInteger) { self = .number(Int(number)) }
  init(_ list: [VectorValue]) { self = .list(list) }
}

/// One case: a file `name.json` with the members `about`, `kind`, `expect` ("ok" or an error's name), and those
/// specific to the case.
struct Vector {
  let name: String
  var members: [String: VectorValue]

  init(_ name: String, _ kind: String, about: String, expect: String = "ok", _ members: [String: VectorValue]) {
    self.name = name
    self.members = members.merging(
      ["kind": .text(kind), "about": .text(about), "expect": .text(expect)], uniquingKeysWith: { $1 })
  }

  init(contentsOf url: URL) throws {
    name = url.deletingPathExtension().lastPathComponent
    members = try JSONDecoder().decode([String: VectorValue].self, from: try Data(contentsOf: url))
  }

  var text: String { VectorValue.object(members).text() + "\n" }

  static let folder = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Vectors", isDirectory: true)

  static func url(_ name: String) -> URL { folder.appendingPathComponent(name + ".json") }

  static func stored() throws -> [Vector] {
    try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "json" }
      .sorted { $0.lastPathComponent < $1.lastPathComponent }
      .map(Vector.init(contentsOf:))
  }

  // MARK: members

  struct MissingMember: Error, CustomStringConvertible {
    let description: String
  }

  subscript(name: String) -> VectorValue? { members[name] }

  func string(_ name: String) throws -> String {
    guard case .text(let text)? = members[name] else { throw MissingMember(description: name) }
    return text
  }

  func bytes(_ name: String) throws -> [UInt8] {
    guard let bytes = [UInt8](hex: try string(name)) else { throw MissingMember(description: name) }
    return bytes
  }

  func int(_ name: String) throws -> Int {
    guard case .number(let number)? = members[name] else { throw MissingMember(description: name) }
    return number
  }

  func list(_ name: String) throws -> [VectorValue] {
    guard case .list(let values)? = members[name] else { throw MissingMember(description: name) }
    return values
  }

  /// Returns the members of an object, readable like a vector's own.
  func object(_ name: String) throws -> Vector {
    guard case .object(let members)? = members[name] else { throw MissingMember(description: name) }
    return Vector(name: name, members: members)
  }

  func objects(_ name: String) throws -> [Vector] {
    try list(name).map { value in
      guard case .object(let members) = value else { throw MissingMember(description: name) }
      return Vector(name: name, members: members)
    }
  }

  func optionalObjects(_ name: String) throws -> [Vector] { self[name] == nil ? [] : try objects(name) }

  func lists(_ name: String) throws -> [[Vector]] {
    try list(name).map { value in try Vector(name: name, members: [name: value]).objects(name) }
  }

  private init(name: String, members: [String: VectorValue]) {
    self.name = name
    self.members = members
  }

  func byteLists(_ name: String) throws -> [[UInt8]] {
    try list(name).map { value in
      guard case .text(let text) = value, let bytes = [UInt8](hex: text) else { throw MissingMember(description: name) }
      return bytes
    }
  }
}

// MARK: mutations

extension VectorValue {
  /// The number of bits in all texts, which are hexadecimal.
  fileprivate var bitCount: Int {
    switch self {
    case .number: 0
    case .text(let text): text.utf8.count * 4
    case .list(let values): values.reduce(0) { $0 + $1.bitCount }
    case .object(let members): members.values.reduce(0) { $0 + $1.bitCount }
    }
  }

  /// Flips a bit, counted over the texts in the order of the file. A bit outside of the value changes nothing.
  fileprivate func flipping(bit: Int) -> VectorValue {
    guard (0..<bitCount).contains(bit) else { return self }
    switch self {
    case .number: return self
    case .text(let text): return VectorValue(([UInt8](hex: text) ?? []).flipping(bit: bit))
    case .list(let values): return .list(Self.flipping(values, bit: bit))
    case .object(let members):
      let keys = members.keys.sorted()
      let values = Self.flipping(keys.compactMap { members[$0] }, bit: bit)
      return .object(Dictionary(uniqueKeysWithValues: zip(keys, values)))
    }
  }

  private static func flipping(_ values: [VectorValue], bit: Int) -> [VectorValue] {
    var start = 0
    return values.map { value in
      defer { start += value.bitCount }
      return value.flipping(bit: bit - start)
    }
  }
}

extension Vector {
  /// The members of a tree that come from a server. The others are what the reader knows and expects.
  private static let served: Set = ["contents", "grants", "links", "others", "records", "zones"]

  private var copy: VectorValue { .object(members.filter { Self.served.contains($0.key) }) }

  var servedBitCount: Int { copy.bitCount }

  func flippingServed(bit: Int) -> Vector {
    guard case .object(let flipped) = copy.flipping(bit: bit) else { return self }
    return Vector(name: name, members: members.merging(flipped) { $1 })
  }
}
