import ArgumentParser
import Foundation

/// `make bench`: how fast, how big, each figure beside a yardstick of the same run.
@main struct ZDCBench: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "zdc-bench",
    abstract: "Measures client and server of this build and prints each figure beside a yardstick of the same run.",
    discussion: """
      The client runs in this process, the server in another one, each with its real storage below the folder for temporary files.
      Figures are medians. A figure that misses what is to be reached is shown as such; the exit code stays 0, because a machine that is
      busy with something else is no error.
      """)

  @Option(parsing: .upToNextOption, help: ArgumentHelp("Only these rows.", valueName: "id"))
  var only: [String] = []

  @Flag(help: "One run of each instead of several.")
  var quick = false

  @Option(help: ArgumentHelp("Also write the figures to this file, as JSON.", valueName: "file"))
  var json: String?

  @Flag(help: "List the rows and measure nothing.")
  var list = false

  func validate() throws {
    let unknown = only.filter { id in !Row.all.contains { $0.id == id } }
    guard unknown.isEmpty else { throw ValidationError("no such row: \(unknown.joined(separator: ", "))") }
  }

  func run() async throws {
    if list {
      for row in Row.all { print("\(row.id)  \(row.title)") }
      return
    }
    let wanted = only.isEmpty ? Set(Row.all.map(\.id)) : Set(only)
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let bench = Bench(folder: folder.url, runs: quick ? 1 : 5, samples: quick ? 100 : 400)
    var figures: [Figure] = []
    for group in RowGroup.all where !wanted.isDisjoint(with: group.ids) {
      note("measuring \(group.ids.filter(wanted.contains).joined(separator: ", ")) …")
      figures += try await group.measure(bench).filter { wanted.contains($0.id) }
    }
    print(Table(figures: figures).text)
    if let json { try Report(figures).write(to: URL(fileURLWithPath: json)) }
  }
}

/// Remarks go to standard error: standard output is the table.
func note(_ text: String) {
  FileHandle.standardError.write(Data("zdc-bench: \(text)\n".utf8))
}
