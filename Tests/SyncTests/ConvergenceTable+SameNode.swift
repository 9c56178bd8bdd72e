// Both devices change the node /f. A names it a or moves it to /d; B names it b or moves it to /e.

extension ConvergenceTable {
  static let sameNode: [ConvergenceRow] =
    underWay("create / create", b: { _ in }, "/f  \"A\"")
    + underWay("create / data", b: { try await $0.edit("/f", "B") }, "/f  \"B\"")
    + underWay("create / rename", b: { try await $0.rename("/f", "b") }, "/b  \"A\"")
    + underWay("create / move", b: { try await $0.move("/f", "/e/f") }, "/e/f  \"A\"")
    + underWay("create / delete", b: { try await $0.delete("/f") }, "")

    + same(
      "data / data", a: { try await $0.edit("/f", "A") }, b: { try await $0.edit("/f", "B") },
      aFirst: .init(server: "/f  \"A\"", b: "/f  \"B\"  [putData conflictHeld]"),
      bFirst: .init(server: "/f  \"B\"", a: "/f  \"A\"  [putData conflictHeld]"))
    + same(
      "data / rename", a: { try await $0.edit("/f", "A") }, b: { try await $0.rename("/f", "b") },
      always: "/b  \"A\"")
    + same(
      "data / move", a: { try await $0.edit("/f", "A") }, b: { try await $0.move("/f", "/e/f") },
      always: "/e/f  \"A\"")
    + same(
      "data / delete", a: { try await $0.edit("/f", "A") }, b: { try await $0.delete("/f") },
      aFirst: .init(server: ""),
      bFirst: .init(server: "", a: "/f  \"A\"  [putData deletedRemotely, create deletedRemotely]"))

    + same(
      "rename / rename", a: { try await $0.rename("/f", "a") }, b: { try await $0.rename("/f", "b") },
      aFirst: .init(server: "/a  \"base\""), bFirst: .init(server: "/b  \"base\""))
    + same(
      "rename / move", a: { try await $0.rename("/f", "a") }, b: { try await $0.move("/f", "/e/f") },
      aFirst: .init(server: "/a  \"base\""), bFirst: .init(server: "/e/f  \"base\""))
    + same(
      "rename / delete", a: { try await $0.rename("/f", "a") }, b: { try await $0.delete("/f") }, always: "")

    + same(
      "move / move", a: { try await $0.move("/f", "/d/f") }, b: { try await $0.move("/f", "/e/f") },
      aFirst: .init(server: "/d/f  \"base\""), bFirst: .init(server: "/e/f  \"base\""))
    + same(
      "move / delete", a: { try await $0.move("/f", "/d/f") }, b: { try await $0.delete("/f") },
      aFirst: .init(server: ""),
      bFirst: .init(server: "", a: "/d/f  \"base\"  [create deletedRemotely, putData deletedRemotely]"))
    + same(
      "delete / delete", a: { try await $0.delete("/f") }, b: { try await $0.delete("/f") }, always: "")

  // MARK: Making rows

  private static func same(
    _ changes: String, a: @escaping ConvergenceRow.Steps, b: @escaping ConvergenceRow.Steps, always: String
  ) -> [ConvergenceRow] {
    same(changes, a: a, b: b, aFirst: .init(server: always), bFirst: .init(server: always))
  }

  private static func same(
    _ changes: String, a: @escaping ConvergenceRow.Steps, b: @escaping ConvergenceRow.Steps,
    aFirst: ConvergenceRow.Outcome, bFirst: ConvergenceRow.Outcome
  ) -> [ConvergenceRow] {
    let start: ConvergenceRow.Steps = {
      try await $0.create("/d")
      try await $0.create("/e")
      try await $0.create("/f", "base")
    }
    return rows(.sameNode, changes, .init(start: start, a: a, b: b), aFirst.with("/d", "/e"), bFirst.with("/d", "/e"))
  }

  /// A's create has arrived, but its answer has not.
  private static func underWay(
    _ changes: String, b: @escaping ConvergenceRow.Steps, _ always: String
  ) -> [ConvergenceRow] {
    let scene = ConvergenceRow.Scene(
      start: {
        try await $0.create("/d")
        try await $0.create("/e")
      }, a: { try await $0.create("/f", "A") }, b: b, isAUnderWay: true)
    let outcome = ConvergenceRow.Outcome(server: always).with("/d", "/e")
    return rows(.sameNode, changes, scene, outcome, outcome)
  }
}
