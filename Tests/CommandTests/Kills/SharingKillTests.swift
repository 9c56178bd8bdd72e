import Foundation
import Testing

/// SIGKILL to a real client or server while a folder is shared, and while access to it ends.
@Suite(.serialized)
struct SharingKillTests {
  enum Step: CaseIterable, Sendable {
    case request, lostAnswer, answer

    /// - Parameter usual: The traffic of the same command without a kill.
    func moment(_ usual: Meter.Counts) -> Moment {
      switch self {
      case .request: .up(usual.up * 3 / 4)
      case .lostAnswer: .commitAnswer(usual.commitAnswers, isDelivered: false)
      case .answer: .commitAnswer(usual.commitAnswers, isDelivered: true)
      }
    }
  }

  /// - The owner's client, or the server, is killed while a folder is shared, and again while the member is removed
  /// => after a sync, or the same command again, the member reads the folder as long as they have access and not after it,
  ///    and the owner's new device has everything
  @Test(arguments: ProgramWorld.Prey.allCases)
  func aShareAndARemoval(_ prey: ProgramWorld.Prey) async throws {
    let world = try await ProgramWorld()
    do { try await Self.play(SharingKillStory(world), prey) } catch {
      await world.end()
      throw error
    }
    await world.end()
  }

  private static func play(_ story: SharingKillStory, _ prey: ProgramWorld.Prey) async throws {
    let people = try await story.begin()
    let usual = try await story.usual(people)
    for (number, step) in Step.allCases.enumerated() {
      let folder = try await story.put("folder-\(number)")
      try await story.share(folder, people, killing: prey, at: step.moment(usual.share))
      let path = try await story.accept(people)
      try await story.expectAccess(to: path, true, "\(prey) killed at \(step) of the share")
      try await story.remove(folder, people, killing: prey, at: step.moment(usual.removal))
      try await story.expectAccess(to: path, false, "\(prey) killed at \(step) of the removal")
    }
    try await story.expectNothingLost()
  }
}

/// An owner and a member on one server, each with a device.
struct SharingKillStory {
  let world: ProgramWorld

  init(_ world: ProgramWorld) { self.world = world }

  struct People: Sendable {
    var owner: String
    var member: String
  }

  private struct Account: Decodable { var userID: String }
  private struct Offer: Decodable { var cloudID: String }
  private struct Accepted: Decodable { var path: String }
  private struct Status: Decodable {
    struct Queue: Decodable { var total: Int }
    var queue: Queue
  }

  private func first<T: Decodable>(_ type: T.Type, in output: String) throws -> T {
    let line = try #require(output.split(separator: "\n").first, "nothing was printed")
    return try JSONDecoder().decode(type, from: Data(line.utf8))
  }

  // MARK: Beginning

  func begin() async throws -> People {
    for device in ["owner", "member"] {
      try await world.mustRun(
        device, "account", "create", "--server", world.url, "--words-file", words(of: device).path)
    }
    return People(owner: try await userID(of: "owner"), member: try await userID(of: "member"))
  }

  private func words(of device: String) -> URL { world.folder.appendingPathComponent("\(device).words") }

  private func userID(of device: String) async throws -> String {
    try first(Account.self, in: try await world.mustRun(device, "account", "list", "--json").output).userID
  }

  /// - Returns: The folder's path in the tree.
  func put(_ name: String) async throws -> String {
    let folder = world.want.appendingPathComponent(name)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for file in ["a", "b"] { try Data("\(name) \(file)".utf8).write(to: folder.appendingPathComponent(file)) }
    try await world.mustRun("owner", "put", folder.path, "home:/")
    return "home:/\(name)"
  }

  /// The traffic of a share and of a removal without a kill.
  func usual(_ people: People) async throws -> (share: Meter.Counts, removal: Meter.Counts) {
    let folder = try await put("usual")
    let share = try await world.mustRun("owner", "share", people.member, folder)
    let removal = try await world.mustRun("owner", "unshare", people.member, folder)
    return (share.counts, removal.counts)
  }

  // MARK: Kills

  func share(_ folder: String, _ people: People, killing prey: ProgramWorld.Prey, at moment: Moment) async throws {
    try await change(["share", people.member, folder], people, killing: prey, at: moment)
    #expect(try await isShared(folder, people), "\(folder): \(prey) killed \(moment)")
  }

  func remove(_ folder: String, _ people: People, killing prey: ProgramWorld.Prey, at moment: Moment) async throws {
    try await change(["unshare", people.member, folder], people, killing: prey, at: moment)
    #expect(try await !isShared(folder, people), "\(folder): \(prey) killed \(moment)")
  }

  /// Runs the command with a kill. The queue is responsible for what was queued by then, and the command for the rest.
  private func change(
    _ command: [String], _ people: People, killing prey: ProgramWorld.Prey, at moment: Moment
  ) async throws {
    let folder = try #require(command.last)
    let wasShared = try await isShared(folder, people)
    let outcome = try await world.zdc("owner", command, killing: prey, at: moment)
    try #require(outcome.hasStruck, "the kill came too late: \(prey), \(moment)\n\(outcome.errors)")
    if prey == .server { try await world.restartServer() }
    try await world.mustRun("owner", "sync")
    guard try await isShared(folder, people) == wasShared else { return }
    try await world.mustRun("owner", command[0], command[1], command[2])
  }

  private func isShared(_ folder: String, _ people: People) async throws -> Bool {
    let shares = try await world.mustRun("owner", "shares").output.split(separator: "\n")
    return shares.contains { $0.hasPrefix("\(folder) ") && $0.contains(people.member) }
  }

  // MARK: What must be true

  /// - Returns: The path of the only folder that is offered, in the member's tree.
  func accept(_ people: People) async throws -> String {
    let offer = try first(Offer.self, in: try await world.mustRun("member", "shares", "--offered", "--json").output)
    let accepted = try await world.mustRun("member", "accept", people.owner, offer.cloudID, "--json")
    return try first(Accepted.self, in: accepted.output).path
  }

  func expectAccess(to path: String, _ isMember: Bool, _ story: String) async throws {
    try await world.mustRun("member", "sync")
    let read = try await world.zdc("member", ["get", "\(path)/a", "-"])
    #expect((read.status == 0) == isMember, "\(story): \(read.status)\n\(read.errors)")
    if isMember { #expect(read.output.hasSuffix(" a"), "\(story): \(read.output)") }
  }

  func expectNothingLost() async throws {
    let answer = try await world.mustRun("owner", "status", "--offline", "--json").output
    #expect(try first(Status.self, in: answer).queue.total == 0, "\(answer)")
    try await world.mustRun("new", "account", "login", "--server", world.url, "--words-file", words(of: "owner").path)
    let copy = world.folder.appendingPathComponent("copy")
    try await world.mustRun("new", "get", "home:/", copy.path)
    let files = try FileManager.default.subpathsOfDirectory(atPath: world.want.path).sorted()
    #expect(try FileManager.default.subpathsOfDirectory(atPath: copy.path).sorted() == files)
    for file in files where file.hasSuffix("/a") || file.hasSuffix("/b") {
      let bytes = try Data(contentsOf: copy.appendingPathComponent(file))
      #expect(try bytes == Data(contentsOf: world.want.appendingPathComponent(file)), "\(file)")
    }
  }
}
