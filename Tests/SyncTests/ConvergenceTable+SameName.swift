// Two nodes that both claim the path /n. A's is a new one, /a, or /x/n; B's is a new one, /b, or /y/n. Where one side
// edits or deletes /n, the other deletes it and puts another node there.

extension ConvergenceTable {
  static let sameName: [ConvergenceRow] = claims + reuse + neighbours

  private typealias Steps = ConvergenceRow.Steps

  /// The later one becomes "n 2".
  private static let claims: [ConvergenceRow] =
    claim("create / create", nothing, newA, newB, "A", "B")
    + claim("create / rename", [b], newA, renameB, "A", "b")
    + claim("create / move", [y], newA, moveY, "A", "y", "/y")
    + claim("rename / rename", [a, b], renameA, renameB, "a", "b")
    + claim("rename / move", [a, y], renameA, moveY, "a", "y", "/y")
    + claim("move / move", [x, y], moveX, moveY, "x", "y", "/x", "/y")

  /// A replaces /n with another node while B edits or deletes it.
  private static let reuse: [ConvergenceRow] =
    replace("create / data", nothing, newA, "A") + replace("rename / data", [a], renameA, "a")
    + replace("move / data", [x], moveX, "x", "/x")
    + deleted("create / delete", nothing, newA, "/n  \"A\"") + deleted("rename / delete", [a], renameA, "/n  \"a\"")
    + deleted("move / delete", [x], moveX, "/n  \"x\"\n/x")

  /// Siblings left by a name clash do not affect each other.
  private static let neighbours: [ConvergenceRow] =
    pair("data / data", { try await $0.edit("/n", "A") }, { try await $0.edit("/n 2", "B") }, "/n  \"A\"\n/n 2  \"B\"")
    + pair("data / delete", { try await $0.edit("/n", "A") }, { try await $0.delete("/n 2") }, "/n  \"A\"")
    + pair("delete / delete", { try await $0.delete("/n") }, { try await $0.delete("/n 2") }, "")

  // MARK: Steps

  private static let nothing: [Steps] = []
  private static let a: Steps = { try await $0.create("/a", "a") }
  private static let b: Steps = { try await $0.create("/b", "b") }
  private static let x: Steps = {
    try await $0.create("/x")
    try await $0.create("/x/n", "x")
  }
  private static let y: Steps = {
    try await $0.create("/y")
    try await $0.create("/y/n", "y")
  }
  private static let newA: Steps = { try await $0.create("/n", "A") }
  private static let newB: Steps = { try await $0.create("/n", "B") }
  private static let renameA: Steps = { try await $0.rename("/a", "n") }
  private static let renameB: Steps = { try await $0.rename("/b", "n") }
  private static let moveX: Steps = { try await $0.move("/x/n", "/n") }
  private static let moveY: Steps = { try await $0.move("/y/n", "/n") }

  // MARK: Making rows

  private static func claim(
    _ changes: String, _ start: [Steps], _ a: @escaping Steps, _ b: @escaping Steps, _ textA: String, _ textB: String,
    _ folders: String...
  ) -> [ConvergenceRow] {
    func outcome(_ first: String, _ second: String) -> ConvergenceRow.Outcome {
      .init(server: (["/n  \"\(first)\"", "/n 2  \"\(second)\""] + folders).joined(separator: "\n"))
    }
    return rows(
      .sameName, changes, .init(start: all(start), a: a, b: b), outcome(textA, textB), outcome(textB, textA))
  }

  private static func replace(
    _ changes: String, _ start: [Steps], _ claim: @escaping Steps, _ text: String, _ folders: String...
  ) -> [ConvergenceRow] {
    let server = (["/n  \"\(text)\""] + folders).joined(separator: "\n")
    let kept = "/n 2  \"B\"  [putData deletedRemotely, create deletedRemotely]"
    let waiting = (["/n  \"\(text)\"", kept] + folders).joined(separator: "\n")
    return rows(
      .sameName, changes, .init(start: withN(start), a: replacing(claim), b: { try await $0.edit("/n", "B") }),
      .init(server: server, b: waiting), .init(server: server))
  }

  private static func deleted(
    _ changes: String, _ start: [Steps], _ claim: @escaping Steps, _ always: String
  ) -> [ConvergenceRow] {
    rows(
      .sameName, changes, .init(start: withN(start), a: replacing(claim), b: { try await $0.delete("/n") }),
      .init(server: always), .init(server: always))
  }

  private static func pair(
    _ changes: String, _ a: @escaping Steps, _ b: @escaping Steps, _ always: String
  ) -> [ConvergenceRow] {
    let start: Steps = {
      try await $0.create("/n", "n")
      try await $0.create("/n 2", "m")
    }
    return rows(
      .sameName, changes, .init(start: start, a: a, b: b), .init(server: always), .init(server: always))
  }

  private static func all(_ steps: [Steps]) -> Steps {
    { actor in for step in steps { try await step(actor) } }
  }

  private static func withN(_ steps: [Steps]) -> Steps {
    all(steps + [{ try await $0.create("/n", "n") }])
  }

  private static func replacing(_ claim: @escaping Steps) -> Steps {
    {
      try await $0.delete("/n")
      try await claim($0)
    }
  }
}
