import Foundation

// The convergence table (PROTOCOL 3.7, "Outcomes of concurrent changes"): pairs of {create, data, rename, move,
// delete}, in three orders, on the same node, on parent and child, and on siblings with the same name. Every outcome is
// a literal tree.

enum ConvergenceTable {
  static let all = sameNode + parentAndChild + sameName + other

  static func rows(
    _ relation: ConvergenceRow.Relation, _ changes: String, _ scene: ConvergenceRow.Scene,
    _ aFirst: ConvergenceRow.Outcome, _ bFirst: ConvergenceRow.Outcome
  ) -> [ConvergenceRow] {
    // "Both offline" commits A's change first, so it must end like "A first".
    [(.aFirst, aFirst), (.bFirst, bFirst), (.bothOffline, aFirst)].map { order, outcome in
      ConvergenceRow(relation: relation, changes: changes, order: order, scene: scene, outcome: outcome)
    }
  }
}

extension ConvergenceRow.Outcome {
  /// Returns the outcome with these lines added to every tree.
  func with(_ lines: String...) -> ConvergenceRow.Outcome {
    func joined(_ tree: String) -> String {
      (tree.split(separator: "\n").map(String.init) + lines).sorted { Self.path($0) < Self.path($1) }
        .joined(separator: "\n")
    }
    return .init(server: joined(server), a: a.map(joined), b: b.map(joined))
  }

  private static func path(_ line: String) -> String {
    line.range(of: "  ").map { String(line[..<$0.lowerBound]) } ?? line
  }
}
