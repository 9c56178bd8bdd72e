// Outcomes of PROTOCOL 3.7 that need more than two nodes.

extension ConvergenceTable {
  static let other: [ConvergenceRow] =
    rows(
      .other, "moves that make a ring",
      .init(
        start: {
          try await $0.create("/x")
          try await $0.create("/y")
        }, a: { try await $0.move("/x", "/y/x") }, b: { try await $0.move("/y", "/x/y") }),
      .init(server: "/y\n/y/x"), .init(server: "/x\n/x/y"))
    // The local move is reverted. If it is committed first, its node is taken out of the folder before the folder is
    // deleted.
    + rows(
      .other, "delete a folder / move into it", .init(start: folder, a: { try await $0.delete("/d") }, b: moveIn),
      .init(server: "/f  \"base\""), .init(server: "/f  \"base\""))
    + rows(
      .other, "delete a folder / move into it a node whose name is taken outside",
      .init(
        start: {
          try await folder($0)
          try await $0.create("/s")
          try await $0.create("/s/f", "s")
        }, a: { try await $0.delete("/d") }, b: { try await $0.move("/s/f", "/d/f") }),
      .init(server: "/f  \"base\"\n/s\n/s/f  \"s\""), .init(server: "/f  \"base\"\n/f 2  \"s\"\n/s"))
    + rows(
      .other, "delete a folder / create, edit and rename in it",
      .init(
        start: {
          try await $0.create("/d")
          try await $0.create("/d/c", "base")
          try await $0.create("/d/r", "r")
        }, a: { try await $0.delete("/d") },
        b: {
          try await $0.create("/d/n", "B")
          try await $0.edit("/d/c", "B")
          try await $0.rename("/d/r", "s")
        }),
      .init(
        server: "",
        b: """
          /d  [create deletedRemotely, putData deletedRemotely]
          /d/c  "B"  [putData deletedRemotely, create deletedRemotely]
          /d/n  "B"  [create deletedRemotely, putData deletedRemotely]
          """), .init(server: ""))

  private static let folder: ConvergenceRow.Steps = {
    try await $0.create("/d")
    try await $0.create("/f", "base")
  }
  private static let moveIn: ConvergenceRow.Steps = { try await $0.move("/f", "/d/f") }
}
