internal import Foundation

/// Gives each node of one folder a file name of its own. Pure.
package enum ExportNames {
  /// Safe names in the order of the given ones, no two of which could meet in the folder.
  ///
  /// Names that are safe as they are keep it, whatever the order; those that had to change get a number when theirs is
  /// taken. The same names give
  /// the same result, in any order, so that a second export finds the files of the first.
  ///
  /// - Parameter foldsCase: Whether the folder's file system takes `README` and `readme` for one name. Names that
  ///   differ only in how their
  ///   characters are composed never stand side by side.
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

  /// Strings compare by canonical equivalence, so composition needs no step of its own.
  private static func key(_ name: String, _ foldsCase: Bool) -> String {
    // Up and down again: ß and SS, ſ and s meet too.
    foldsCase ? name.precomposedStringWithCompatibilityMapping.uppercased().lowercased() : name
  }
}

/// Hands out names that are different from all before: the wanted one, or that with the first number that is free.
package struct FreeNames {
  private let key: (String) -> String
  private var taken: Set<String> = []
  /// Where to go on, by what is left of a name before a number of so many digits: everything below is taken.
  private var next: [String: Int] = [:]
  /// How often a name was looked up, for whoever wants to know what it cost.
  package private(set) var looks = 0

  /// - Parameter key: equal for names that may not stand side by side.
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

  /// Long names are cut for the number, so that different ones may be after the same numbers.
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
