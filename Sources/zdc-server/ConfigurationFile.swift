import Foundation

/// A file with options of `zdc-server serve`, named as on the command line.
///
/// The program turns its values into arguments, so that one parser knows all names and checks all values. Arguments of
/// the command line and the environment win. Other commands read from the file where the stores and the socket are.
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
  static let options = names(of: [Serve(), BlobOptions()]).subtracting(["config", "blob-options"])

  /// Returns the options that the properties of commands and of groups of options stand for.
  fileprivate static func names(of groups: [Any]) -> Set<String> {
    Set(groups.flatMap { Mirror(reflecting: $0).children.compactMap(\.label) }.map(name))
  }

  /// Returns the option of a property: `max-streams` for `_maxStreams`, as ArgumentParser names it.
  private static func name(ofProperty label: String) -> String {
    label.drop { $0 == "_" }.reduce(into: "") { name, letter in
      name += letter.isUppercase ? "-\(letter.lowercased())" : String(letter)
    }
  }

  /// Returns the arguments for the options that neither the command line nor the environment sets.
  ///
  /// - Parameters:
  ///   - names: The command's name for each option of the file that it takes; nil for all, as they are.
  ///   - given: The arguments of the command line.
  ///   - environment: The variables that set an option: `ZDC_DATABASE`.
  func arguments(
    named names: [String: String]? = nil, beside given: [String], environment: [String: String]
  ) -> [String] {
    var taken = Self.names(in: given)
    for name in ["database", "from-database", "to-database"] where environment[Self.variable(name)] != nil {
      taken.insert(name)
    }
    return values.keys.sorted().flatMap { option -> [String] in
      guard let name = names.map({ $0[option] }) ?? option, !taken.contains(name) else { return [] }
      return (values[option]?.texts ?? []).map { "--\(name)=\($0)" }
    }
  }

  /// The variable that sets an option: `ZDC_FROM_DATABASE` for `from-database`.
  private static func variable(_ option: String) -> String {
    "ZDC_" + option.uppercased().replacingOccurrences(of: "-", with: "_")
  }
}

extension ConfigurationFile {
  /// An option that names a file, and the options of a command that the file may set.
  struct Use {
    var option = "config"
    /// The command's names, by those of the file; nil for all, as they are.
    var names: [String: String]?
    /// Options each of which is given in place of the file.
    var alternatives: Set<String> = []

    /// Returns the options that a command takes from configuration files.
    ///
    /// - Parameter command: The words before the first option: `["admin", "users"]`.
    static func of(_ command: [String]) -> [Self] {
      switch command.first {
      case "serve": [Self()]
      case "check": [Self(names: same(ConfigurationFile.names(of: [Check(), BlobOptions()])))]
      case "backup": [Self(names: same(ConfigurationFile.names(of: [BackUp()])))]
      case "admin": [Self(names: ["data": "data", "admin-socket": "socket"], alternatives: ["data", "socket"])]
      case "migrate": [store("from"), store("to")]
      case "restore": [store("to")]
      default: []
      }
    }

    private static func same(_ names: Set<String>) -> [String: String] {
      Dictionary(uniqueKeysWithValues: names.intersection(ConfigurationFile.options).map { ($0, $0) })
    }

    /// The options that say where stores are, which a command that knows two places has twice.
    private static func store(_ place: String) -> Self {
      let names = ["data", "database", "blobs", "blobs-region", "blobs-key-file"]
      return Self(
        option: "\(place)-config", names: Dictionary(uniqueKeysWithValues: names.map { ($0, "\(place)-\($0)") }))
    }
  }

  /// Returns the command line with the options of the files that it names with `--config`.
  static func merged(_ arguments: [String], environment: [String: String]) throws -> [String] {
    let command = Array(arguments.prefix { !$0.hasPrefix("-") }.prefix(arguments.first == "admin" ? 2 : 1))
    let added = try Use.of(command).flatMap { use in
      guard let path = path(of: use.option, in: arguments), names(in: arguments).isDisjoint(with: use.alternatives)
      else { return [String]() }
      return try Self(path: path).arguments(named: use.names, beside: arguments, environment: environment)
    }
    return command + added + arguments.dropFirst(command.count)
  }

  private static func path(of option: String, in arguments: [String]) -> String? {
    for (index, argument) in arguments.enumerated() {
      if argument == "--\(option)", index + 1 < arguments.count { return arguments[index + 1] }
      if argument.hasPrefix("--\(option)=") { return String(argument.dropFirst("--\(option)=".count)) }
    }
    return nil
  }

  /// The names of the options on a command line.
  private static func names(in arguments: [String]) -> Set<String> {
    Set(arguments.filter { $0.hasPrefix("--") }.map { String($0.dropFirst(2).prefix { $0 != "=" }) })
  }
}
