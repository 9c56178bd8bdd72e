internal import ZDCProtocol

/// A parameter of a statement. Each case has one PostgreSQL type, also for null.
enum PostgresValue: Sendable {
  case int(Int64?)
  case bytes([UInt8]?)
  case text(String)
  case ints([Int64?])
  case byteArrays([[UInt8]?])

  static func ms(_ value: UInt64?) -> PostgresValue { .int(value.map { Int64(clamping: $0) }) }
  static func id<Role>(_ value: Bytes16<Role>) -> PostgresValue { .bytes(value.bytes) }
  static func id<Role>(_ value: Bytes32<Role>) -> PostgresValue { .bytes(value.bytes) }
  static func id<Role>(_ value: Bytes32<Role>?) -> PostgresValue { .bytes(value?.bytes) }
  static func ids<Role>(_ values: [Bytes16<Role>]) -> PostgresValue { .byteArrays(values.map(\.bytes)) }
  static func ids<Role>(_ values: [Bytes32<Role>]) -> PostgresValue { .byteArrays(values.map(\.bytes)) }

  /// The type's number in the system catalogue, which never changes.
  var type: UInt32 {
    switch self {
    case .bytes: 17
    case .int: 20
    case .text: 25
    case .byteArrays: 1_001
    case .ints: 1_016
    }
  }

  /// The binary form; nil for null.
  var encoded: [UInt8]? {
    switch self {
    case .int(let number): number.map { Self.bigEndian($0) }
    case .bytes(let bytes): bytes
    case .text(let text): Array(text.utf8)
    case .ints(let numbers): Self.array(numbers.map { $0.map { Self.bigEndian($0) } }, elementType: 20)
    case .byteArrays(let arrays): Self.array(arrays, elementType: 17)
    }
  }

  /// A header (dimensions, whether an element is null, the elements' type, length, lower bound), then each element with
  /// its length, -1 for null.
  private static func array(_ elements: [[UInt8]?], elementType: UInt32) -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(20 + elements.reduce(0) { $0 + 4 + ($1?.count ?? 0) })
    out += bigEndian(Int32(elements.isEmpty ? 0 : 1))
    out += bigEndian(Int32(elements.contains { $0 == nil } ? 1 : 0))
    out += bigEndian(elementType)
    guard !elements.isEmpty else { return out }
    out += bigEndian(Int32(clamping: elements.count)) + bigEndian(Int32(1))
    for element in elements {
      out += bigEndian(element.map { Int32(clamping: $0.count) } ?? -1)
      if let element { out += element }
    }
    return out
  }

  private static func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }
}

/// A row of a result in binary form, valid inside the closure that reads it. Columns are counted from zero.
struct PostgresRow {
  let library: LibPQ
  let result: LibPQ.Result
  let index: Int32

  func isNull(_ column: Int32) -> Bool { library.isNull(result, index, column) != 0 }

  func bytes(_ column: Int32) -> [UInt8] {
    let count = Int(library.length(result, index, column))
    guard count > 0, let start = library.value(result, index, column) else { return [] }
    return [UInt8](UnsafeBufferPointer(start: start, count: count))
  }

  func optionalBytes(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : bytes(column) }

  /// Reads a column of type int8, int4, int2 or bool; 0 for null.
  func int(_ column: Int32) -> Int64 {
    let count = Int(library.length(result, index, column))
    guard (1...8).contains(count), let start = library.value(result, index, column) else { return 0 }
    let bytes = UnsafeBufferPointer(start: start, count: count)
    let isNegative = bytes[0] & 0x80 != 0 && count > 1
    return bytes.reduce(isNegative ? -1 : 0) { $0 << 8 | Int64($1) }
  }

  func unsigned(_ column: Int32) -> UInt64 { UInt64(clamping: int(column)) }
  func optionalInt(_ column: Int32) -> Int64? { isNull(column) ? nil : int(column) }
  func optionalUnsigned(_ column: Int32) -> UInt64? { isNull(column) ? nil : unsigned(column) }
  func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }

  func id<Role>(_ column: Int32) throws -> Bytes16<Role> {
    guard let id = Bytes16<Role>(bytes(column)) else { throw PostgresError.damaged }
    return id
  }

  func id<Role>(_ column: Int32) throws -> Bytes32<Role> {
    guard let id = Bytes32<Role>(bytes(column)) else { throw PostgresError.damaged }
    return id
  }

  func optionalID<Role>(_ column: Int32) throws -> Bytes32<Role>? { isNull(column) ? nil : try id(column) }
}
