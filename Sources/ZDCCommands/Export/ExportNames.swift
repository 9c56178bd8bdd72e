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
    var taken: Set<String> = []
    var assigned = safe
    for index in order {
      assigned[index] = free(safe[index]) { taken.insert(key($0, foldsCase || policy == .portable)).inserted }
    }
    return assigned
  }

  private static func free(_ name: String, take: (String) -> Bool) -> String {
    if take(name) { return name }
    var number = 2
    while true {
      let candidate = ExportName.shortened(name, to: ExportName.longest, tail: "~\(number)")
      if take(candidate) { return candidate }
      number += 1
    }
  }

  /// Strings compare by canonical equivalence, so composition needs no step of its own.
  private static func key(_ name: String, _ foldsCase: Bool) -> String {
    // Up and down again: ß and SS, ſ and s meet too.
    foldsCase ? name.precomposedStringWithCompatibilityMapping.uppercased().lowercased() : name
  }
}
