// A changes the folder /p, B its child /p/c (or creates /p/n). /e is empty.

extension ConvergenceTable {
  static let parentAndChild: [ConvergenceRow] = createdParent + changedParent + deletedParent

  private typealias Steps = ConvergenceRow.Steps

  private static let create: Steps = { try await $0.create("/p/n", "B") }
  private static let data: Steps = { try await $0.edit("/p/c", "B") }
  private static let rename: Steps = { try await $0.rename("/p/c", "d") }
  private static let move: Steps = { try await $0.move("/p/c", "/e/c") }
  private static let delete: Steps = { try await $0.delete("/p/c") }

  private static let start: Steps = {
    try await $0.create("/e")
    try await $0.create("/p")
    try await $0.create("/p/c", "base")
  }

  /// A's creation of both has arrived, but its answer has not.
  private static let createdParent: [ConvergenceRow] =
    underWay("create / create", create, "/e\n/p\n/p/c  \"base\"\n/p/n  \"B\"")
    + underWay("create / data", data, "/e\n/p\n/p/c  \"B\"")
    + underWay("create / rename", rename, "/e\n/p\n/p/d  \"base\"")
    + underWay("create / move", move, "/e\n/e/c  \"base\"\n/p")
    + underWay("create / delete", delete, "/e\n/p")

  /// A's changes to the folder do not affect B's changes to the child.
  private static let changedParent: [ConvergenceRow] =
    both("data / create", editParent, create, "/e\n/p  \"A\"\n/p/c  \"base\"\n/p/n  \"B\"")
    + both("data / data", editParent, data, "/e\n/p  \"A\"\n/p/c  \"B\"")
    + both("data / rename", editParent, rename, "/e\n/p  \"A\"\n/p/d  \"base\"")
    + both("data / move", editParent, move, "/e\n/e/c  \"base\"\n/p  \"A\"")
    + both("data / delete", editParent, delete, "/e\n/p  \"A\"")

    + both("rename / create", renameParent, create, "/e\n/q\n/q/c  \"base\"\n/q/n  \"B\"")
    + both("rename / data", renameParent, data, "/e\n/q\n/q/c  \"B\"")
    + both("rename / rename", renameParent, rename, "/e\n/q\n/q/d  \"base\"")
    + both("rename / move", renameParent, move, "/e\n/e/c  \"base\"\n/q")
    + both("rename / delete", renameParent, delete, "/e\n/q")

    + both("move / create", moveParent, create, "/e\n/e/p\n/e/p/c  \"base\"\n/e/p/n  \"B\"")
    + both("move / data", moveParent, data, "/e\n/e/p\n/e/p/c  \"B\"")
    + both("move / rename", moveParent, rename, "/e\n/e/p\n/e/p/d  \"base\"")
    + both("move / move", moveParent, move, "/e\n/e/c  \"base\"\n/e/p")
    + both("move / delete", moveParent, delete, "/e\n/e/p")

  /// The delete wins over changes inside the folder. B's later changes wait for B's app.
  private static let deletedParent: [ConvergenceRow] =
    deleting(
      "delete / create", create, b: "/e\n/p\(parked)\n/p/n  \"B\"\(parked)")
    + deleting(
      "delete / data", data, b: "/e\n/p\(parked)\n/p/c  \"B\"  [putData deletedRemotely, create deletedRemotely]")
    + deleting("delete / rename", rename, b: "/e")
    // B moved the child out of the folder. If that is committed first, the child survives; if not, it waits at its new
    // place.
    + rows(
      .parentAndChild, "delete / move", .init(start: start, a: { try await $0.delete("/p") }, b: move),
      .init(server: "/e", b: "/e\n/e/c  \"base\"\(parked)"), .init(server: "/e\n/e/c  \"base\""))
    + both("delete / delete", { try await $0.delete("/p") }, delete, "/e")

  private static let parked = "  [create deletedRemotely, putData deletedRemotely]"

  private static let editParent: Steps = { try await $0.edit("/p", "A") }
  private static let renameParent: Steps = { try await $0.rename("/p", "q") }
  private static let moveParent: Steps = { try await $0.move("/p", "/e/p") }

  // MARK: Making rows

  private static func both(
    _ changes: String, _ a: @escaping Steps, _ b: @escaping Steps, _ always: String
  ) -> [ConvergenceRow] {
    rows(
      .parentAndChild, changes, .init(start: start, a: a, b: b), .init(server: always), .init(server: always))
  }

  private static func deleting(_ changes: String, _ b: @escaping Steps, b waiting: String) -> [ConvergenceRow] {
    rows(
      .parentAndChild, changes, .init(start: start, a: { try await $0.delete("/p") }, b: b),
      .init(server: "/e", b: waiting), .init(server: "/e"))
  }

  private static func underWay(_ changes: String, _ b: @escaping Steps, _ always: String) -> [ConvergenceRow] {
    let scene = ConvergenceRow.Scene(
      start: { try await $0.create("/e") },
      a: {
        try await $0.create("/p")
        try await $0.create("/p/c", "base")
      }, b: b, isAUnderWay: true)
    return rows(.parentAndChild, changes, scene, .init(server: always), .init(server: always))
  }
}
