import Foundation

/// A file with options of `zdc-server serve`, named as on the command line.
///
/// The program turns its values into arguments, so that one parser knows all names and checks all values. Arguments of
/// the command line and the environment win.
struct ConfigurationFile {
  /// JSON with comments and trailing commas (JSON5).
  private enum Value: Decodable {
    case text(String)
    case number(Int64)
    case list([String])

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let number = try? container.decode(Int64.self) {
        self = .number(number)
      } else if let text = try? container.decode(String.self) {
        self = .text(text)
      } else {
        self = .list(try container.decode([String].self))
      }
    }

    var texts: [String] {
      switch self {
      case .text(let text): [text]
      case .number(let number): ["\(number)"]
      case .list(let texts): texts
      }
    }
  }

  private let path: String
  private let values: [String: Value]

  /// - Throws: ``Failure``: `noInput`, `noPermission`; `usage` for bad JSON, a value of another type, an unknown option.
  init(path: String) throws {
    self.path = path
    guard FileManager.default.fileExists(atPath: path) else { throw Failure(.noInput, "no such file: \(path)") }
    guard let bytes = FileManager.default.contents(atPath: path) else {
      throw Failure(.noPermission, "cannot read \(path)")
    }
    values = try Self.values(in: bytes, path)
    if let unknown = values.keys.sorted().first(where: { !Self.options.contains($0) }) {
      throw Failure(
        .usage, "\(path) has no option of zdc-server serve: \(unknown)",
        hint: "names are as on the command line, without dashes before them: \"max-streams\": 8")
    }
  }

  private static func values(in bytes: Data, _ path: String) throws -> [String: Value] {
    let decoder = JSONDecoder()
    decoder.allowsJSON5 = true
    do {
      return try decoder.decode([String: Value].self, from: bytes)
    } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
      let option = context.codingPath.first?.stringValue
      throw Failure(
        .usage, "\(path): \(option.map { "the value of \($0)" } ?? "the file") has the wrong type",
        hint: "the file is one object; a value is a text, a whole number, or a list of texts")
    } catch {
      throw Failure(
        .usage, "\(path) is not JSON",
        hint:
          "an example: {\"listen\": \"0.0.0.0:443\", \"origin\": [\"https://sync.example.org\"]}; comments are allowed")
    }
  }

  /// The names of the options that a file may set.
  static let options: Set<String> = {
    let groups: [Any] = [Serve(), BlobOptions()]
    let labels = groups.flatMap { Mirror(reflecting: $0).children.compactMap(\.label) }
    return Set(labels.map(name)).subtracting(["config", "blob-options"])
  }()

  /// Returns the option of a property: `max-streams` for `_maxStreams`, as ArgumentParser names it.
  private static func name(ofProperty label: String) -> String {
    label.drop { $0 == "_" }.reduce(into: "") { name, letter in
      name += letter.isUppercase ? "-\(letter.lowercased())" : String(letter)
    }
  }

  /// Returns the arguments for the options that neither the command line nor the environment sets.
  ///
  /// - Parameters:
  ///   - given: The arguments of the command line.
  ///   - environment: The variables that set an option: `ZDC_DATABASE`.
  func arguments(beside given: [String], environment: [String: String]) -> [String] {
    var taken = Set(given.filter { $0.hasPrefix("--") }.map { String($0.dropFirst(2).prefix { $0 != "=" }) })
    if environment["ZDC_DATABASE"] != nil { taken.insert("database") }
    return values.keys.sorted().filter { !taken.contains($0) }.flatMap { name in
      (values[name]?.texts ?? []).map { "--\(name)=\($0)" }
    }
  }
}

extension ConfigurationFile {
  /// Returns the command line with the options of the file that it names with `--config`.
  static func merged(_ arguments: [String], environment: [String: String]) throws -> [String] {
    guard arguments.first == "serve", let path = path(in: arguments) else { return arguments }
    return ["serve"] + (try Self(path: path)).arguments(beside: arguments, environment: environment)
      + arguments.dropFirst()
  }

  private static func path(in arguments: [String]) -> String? {
    for (index, argument) in arguments.enumerated() {
      if argument == "--config", index + 1 < arguments.count { return arguments[index + 1] }
      if argument.hasPrefix("--config=") { return String(argument.dropFirst("--config=".count)) }
    }
    return nil
  }
}
