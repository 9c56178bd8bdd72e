import ArgumentParser
import Foundation

/// `make bench`: measures speed and size, each figure next to a yardstick of the same run.
@main struct ZDCBench: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "zdc-bench",
    abstract: "Measures client and server of this build and prints each figure beside a yardstick of the same run.",
    subcommands: [Measure.self, Worker.self, Fill.self], defaultSubcommand: Measure.self)
}

struct Measure: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure and print the table.",
    discussion: """
      The client runs in this process or, where its memory is measured, in one of its own; the server always has one of its own. Each has
      its real storage below the folder for temporary files. Figures are medians.

      A figure that misses what is to be reached is shown as such and is no error: a machine that is busy with something else misses many.
      Rows that need more disk than there is are left out and named. The exit code is 1 if a row could not be measured, because something was
      lost or took forever.
      """)

  @Option(parsing: .upToNextOption, help: ArgumentHelp("Only these rows.", valueName: "id"))
  var only: [String] = []

  @Flag(help: "One run of each instead of several, and less of everything that is big.")
  var quick = false

  @Option(help: ArgumentHelp("Also write the figures to this file, as JSON.", valueName: "file"))
  var json: String?

  @Option(help: ArgumentHelp("Size of the branch in the rows graft-100k.", valueName: "nodes"))
  var graftedNodes: Int?

  @Option(help: ArgumentHelp("Number of devices in the rows devices-200.", valueName: "devices"))
  var devices: Int?

  @Option(help: ArgumentHelp("Seconds from one edit of such a device to its next one.", valueName: "seconds"))
  var editSeconds: Int?

  @Option(help: ArgumentHelp("Number of zones in the row zones-1000.", valueName: "zones"))
  var zones: Int?

  @Flag(help: "List the rows and measure nothing.")
  var list = false

  func validate() throws {
    let unknown = only.filter { id in !Row.all.contains { $0.id == id } }
    guard graftedNodes ?? 1 > 0 else { throw ValidationError("--grafted-nodes is at least 1") }
    guard devices ?? 2 > 1 else { throw ValidationError("--devices is at least 2") }
    guard editSeconds ?? 1 > 0 else { throw ValidationError("--edit-seconds is at least 1") }
    guard zones ?? 1 > 0 else { throw ValidationError("--zones is at least 1") }
    guard unknown.isEmpty else { throw ValidationError("no such row: \(unknown.joined(separator: ", "))") }
  }

  func run() async throws {
    if list {
      for row in Row.all { print("\(row.id)  \(row.title)") }
      return
    }
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let wanted = only.isEmpty ? Set(Row.all.map(\.id)) : Set(only)
    let outcome = await measure(Bench(folder: folder.url, scale: scale), wanted)
    print(Table(figures: outcome.figures, skipped: outcome.skipped, failed: outcome.failed).text)
    if let json { try Report(outcome.figures).write(to: URL(fileURLWithPath: json)) }
    guard outcome.failed.isEmpty else { throw ExitCode(1) }
  }

  private var scale: Scale {
    var scale = quick ? Scale.quick : .full
    if let graftedNodes { scale.graftedNodes = graftedNodes }
    if let devices { scale.accounts = devices / 2 }
    if let editSeconds { scale.editSeconds = editSeconds }
    if let zones { scale.zones = zones }
    return scale
  }

  private struct Outcome {
    var figures: [Figure] = []
    var skipped: [(ids: [String], reason: String)] = []
    var failed: [(ids: [String], reason: String)] = []
  }

  /// Measures one group of rows after another; a failure in one does not affect the next.
  private func measure(_ bench: Bench, _ wanted: Set<String>) async -> Outcome {
    var outcome = Outcome()
    for group in RowGroup.all where !wanted.isDisjoint(with: group.ids) {
      let ids = group.ids.filter(wanted.contains)
      note("measuring \(ids.joined(separator: ", ")) …")
      let start = ContinuousClock.now
      do {
        try bench.checkDisk(group.disk(bench.scale))
        outcome.figures += try await group.measure(bench).filter { wanted.contains($0.id) }
      } catch let error as NoRoom {
        outcome.skipped.append((ids, error.description))
      } catch {
        note("\(ids.joined(separator: ", ")): \(error)")
        outcome.failed.append((ids, "\(error)"))
      }
      bench.clear()
      note(String(format: "took %.1f s", (ContinuousClock.now - start).seconds))
    }
    return outcome
  }
}

/// Prints a remark to standard error: standard output is the table.
func note(_ text: String) {
  FileHandle.standardError.write(Data("zdc-bench: \(text)\n".utf8))
}
