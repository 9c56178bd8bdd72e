internal import Foundation

/// Gives each node of a folder a unique file name. Pure.
package enum ExportNames {
  /// Returns safe names in the order of the given ones, no two of which collide in the folder.
  ///
  /// Names that are already safe stay as they are, in any order. A changed name that is taken gets a number. The same
  /// names give the same result in any order, so that a second export finds the files of the first.
  ///
  /// - Parameter foldsCase: Whether the folder's file system treats `README` and `readme` as one name. Names that
  ///   differ only in Unicode composition always collide.
  package static func assign(
    _ names: [String], policy: ExportNamePolicy = .native, foldsCase: Bool = false
  ) -> [String] {
    let safe = names.map { ExportName.safe($0, policy: policy) }
    let isAsIs = zip(names, safe).map { Array($0.utf8) == Array($1.utf8) }
    let order = names.indices.sorted { a, b in
      if isAsIs[a] != isAsIs[b] { return isAsIs[a] }
      return names[a].utf8.lexicographicallyPrecedes(names[b].utf8)
    }
    var free = FreeNames { key($0, foldsCase || policy == .portable) }
    var assigned = safe
    for index in order { assigned[index] = free.take(safe[index]) }
    return assigned
  }

  /// Swift strings compare by canonical equivalence, so composition needs no extra step.
  private static func key(_ name: String, _ foldsCase: Bool) -> String {
    // Uppercase, then lowercase: then ß and SS, ſ and s collide, too.
    foldsCase ? name.precomposedStringWithCompatibilityMapping.uppercased().lowercased() : name
  }
}

/// Hands out unique names: the requested one, or that with the first free number.
package struct FreeNames {
  private let key: (String) -> String
  private var taken: Set<String> = []
  /// The next number to try, by truncated name and number of digits: all smaller numbers are taken.
  private var next: [String: Int] = [:]
  /// The number of lookups, to measure the cost.
  package private(set) var looks = 0

  /// - Parameter key: Returns equal values for names that collide.
  package init(key: @escaping (String) -> String) {
    self.key = key
  }

  package mutating func take(_ name: String) -> String {
    if insert(name) { return name }
    var digits = 1
    while true {
      if let numbered = take(name, digits: digits) { return numbered }
      digits += 1
    }
  }

  /// Takes the first free number with this many digits. Long names are truncated to make room for the number, so
  /// different names may compete for the same numbers.
  private mutating func take(_ name: String, digits: Int) -> String? {
    let (first, end) = digits == 1 ? (2, 10) : (Self.power(digits - 1), Self.power(digits))
    let family = key(Self.numbered(name, first))
    for number in (next[family] ?? first)..<end {
      next[family] = number + 1
      let candidate = Self.numbered(name, number)
      if insert(candidate) { return candidate }
    }
    return nil
  }

  private mutating func insert(_ name: String) -> Bool {
    looks += 1
    return taken.insert(key(name)).inserted
  }

  private static func numbered(_ name: String, _ number: Int) -> String {
    ExportName.shortened(name, to: ExportName.longest, tail: "~\(number)")
  }

  private static func power(_ exponent: Int) -> Int {
    (0..<exponent).reduce(1) { product, _ in product * 10 }
  }
}
