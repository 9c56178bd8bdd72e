import Foundation
import Testing

/// Random series of `zdc` commands of two profiles against an exact model. A failure names its seed and the commands.
///
/// ZDC_COMMAND_HISTORIES sets the number of histories, ZDC_SEED the first seed.
@Suite("Command histories", .serialized)
struct CommandHistoryTests {
  private static func number(_ variable: String) -> UInt64? {
    ProcessInfo.processInfo.environment[variable].flatMap { UInt64($0) }
  }

  private static let first = number("ZDC_SEED") ?? 1
  private static let count = number("ZDC_COMMAND_HISTORIES") ?? 4

  @Test("every profile ends with exactly the tree that the commands made", arguments: first..<first + count)
  func randomCommands(seed: UInt64) async throws {
    let world = try await ProgramWorld()
    var history = CommandHistory(world, seed: seed)
    do { try await history.run(turns: 12) } catch {
      await world.end()
      throw HistoryFailure(description: "seed \(seed): \(error)")
    }
    await world.end()
  }
}
