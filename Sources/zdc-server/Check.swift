import ArgumentParser
import Foundation
import ZDCServerSQLite

struct Check: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Verify a data folder at rest: every blob, reference, hash and chain. Changes nothing.",
    discussion: """
      Stop the server first, or check a copy that was taken while it was stopped. Each finding is one line on standard \
      output, with ids but no other user data: damage is acknowledged data that is missing or altered, waste \
      is data that the next collection removes. With --json: one object per finding, then one with the summary.

      \(ExitStatus.help)
      """)

  @Option(name: .long, help: "The server's data folder.")
  var data: String

  @Flag(name: .long, help: "One JSON object per line.")
  var json = false

  func run() throws {
    let printer = CheckPrinter(isJSON: json)
    let report: CheckReport
    do {
      report = try DataFolder.check(path: data, found: printer.show, progress: printer.show)
      try printer.finish(report)
    } catch let error as StoreOpenError {
      printer.clearProgress()
      throw Self.exit(Failure(error))
    } catch let failure as Failure {
      throw Self.exit(failure)
    }
    if !report.isClean { throw ExitStatus.damageFound.code }
  }

  private static func exit(_ failure: Failure) -> ExitCode {
    failure.report()
    return failure.status.code
  }
}

/// Prints findings and the summary to standard output, and progress to a terminal on standard error.
private final class CheckPrinter {
  private let isJSON: Bool
  private let isTerminal = isatty(2) == 1
  private var isProgressShown = false
  /// The error of a finding that could not be printed: the check continues, and throws it at the end.
  private var failure: (any Error)?

  init(isJSON: Bool) {
    self.isJSON = isJSON
  }

  func show(_ finding: CheckFinding) {
    clearProgress()
    guard isJSON else { return print(finding.description) }
    let line = FindingLine(
      severity: finding.severity.rawValue, kind: finding.kind.rawValue,
      ids: Dictionary(finding.fields.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }),
      detail: finding.detail)
    do { try show(line) } catch { failure = failure ?? error }
  }

  func show(_ progress: CheckProgress) {
    guard isTerminal else { return }
    let part = progress.total > 0 ? " \(min(100, progress.done * 100 / progress.total)) %" : ""
    FileHandle.standardError.write(Data("\r\u{1B}[K\(progress.phase.rawValue)\(part)".utf8))
    isProgressShown = true
  }

  func clearProgress() {
    guard isProgressShown else { return }
    FileHandle.standardError.write(Data("\r\u{1B}[K".utf8))
    isProgressShown = false
  }

  /// - Throws: ``Failure`` if a line could not be encoded: readers would take a missing finding for sound data.
  func finish(_ report: CheckReport) throws {
    clearProgress()
    if let failure { throw failure }
    guard !isJSON else { return try show(SummaryLine(summary: .init(report))) }
    let verdict = report.isClean ? "no damage" : "\(report.damage) damaged"
    let elsewhere = report.elsewhere > 0 ? ", \(report.elsewhere) not checked in the object store" : ""
    let waste = report.waste > 0 ? ", \(report.waste) to collect" : ""
    print(
      """
      checked \(report.users) users, \(report.zones) zones, \(report.commits) commits, \(report.nodes) nodes, \
      \(report.records) records, \(report.blobs) content blobs with \(report.contentBytes) bytes: \(verdict)\(waste)\(elsewhere)
      """)
  }

  private func show(_ value: some Encodable) throws {
    do {
      print(try JSONLine.text(value))
    } catch { throw Failure(.software, "a line of the report cannot be written as JSON") }
  }
}

private struct FindingLine: Encodable {
  var severity: String
  var kind: String
  var ids: [String: String]
  var detail: String
}

private struct SummaryLine: Encodable {
  struct Counts: Encodable {
    var clean: Bool
    var damage, waste, users, zones, commits, nodes, records, contents, contentBytes, elsewhere: UInt64

    init(_ report: CheckReport) {
      clean = report.isClean
      (damage, waste) = (report.damage, report.waste)
      (users, zones, commits) = (report.users, report.zones, report.commits)
      (nodes, records) = (report.nodes, report.records)
      (contents, contentBytes, elsewhere) = (report.blobs, report.contentBytes, report.elsewhere)
    }
  }

  var summary: Counts
}
