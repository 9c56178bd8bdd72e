import Foundation
import Synchronization
import ZDCServer
import ZDCServerSQLite

/// Prints findings and the summary to standard output, and progress to a terminal on standard error.
final class CheckPrinter: Sendable {
  private let isJSON: Bool
  private let isTerminal = isatty(2) == 1
  private let isProgressShown = Mutex(false)
  /// The error of a finding that could not be printed: the check continues, and throws it at the end.
  private let failure = Mutex<(any Error)?>(nil)

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
    do { try show(line) } catch { failure.withLock { $0 = $0 ?? error } }
  }

  func show(_ progress: CheckProgress) {
    guard isTerminal else { return }
    let part = progress.total > 0 ? " \(min(100, progress.done * 100 / progress.total)) %" : ""
    showLine(progress.phase.rawValue + part)
  }

  /// Shows the progress of a copy: on a terminal, and with JSON as a line.
  func show(_ progress: CopyProgress, percent: Int) throws {
    if isJSON {
      try show(
        ProgressLine(progress: .init(phase: progress.phase.rawValue, done: progress.done, total: progress.total)))
    } else if isTerminal {
      showLine("\(progress.phase.rawValue) \(percent) %")
    }
  }

  private func showLine(_ text: String) {
    FileHandle.standardError.write(Data("\r\u{1B}[K\(text)".utf8))
    isProgressShown.withLock { $0 = true }
  }

  func clearProgress() {
    let wasShown = isProgressShown.withLock { shown in
      defer { shown = false }
      return shown
    }
    if wasShown { FileHandle.standardError.write(Data("\r\u{1B}[K".utf8)) }
  }

  /// - Throws: ``Failure`` if a finding could not be encoded: readers would take a missing one for sound data.
  func flush() throws {
    clearProgress()
    if let failure = failure.withLock({ $0 }) { throw failure }
  }

  /// - Throws: ``Failure``; see ``flush()``.
  func finish(_ report: CheckReport) throws {
    try flush()
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

  func finish(_ summary: MigrationSummary) throws {
    guard !isJSON else { return try show(["summary": summary]) }
    let damage = summary.damagedContents > 0 ? "; \(summary.damagedContents) damaged, not copied" : ""
    let repeated = summary.repeated.descriptions.map { "; " + $0 }.joined()
    print("copied \(summary.rows) rows, and content with \(summary.contentBytes) bytes\(repeated)\(damage)")
  }

  func finish(_ manifest: Backup.Manifest) throws {
    try flush()
    guard !isJSON else { return try show(["summary": manifest]) }
    let content =
      manifest.isContentElsewhere
      ? "large content is in the object store and not in the backup"
      : "\(manifest.contents) content blobs with \(manifest.contentBytes) bytes, \(manifest.addedContents) of them new"
    print("backed up a database of \(manifest.databaseBytes) bytes, \(content)")
  }

  private func show(_ value: some Encodable) throws {
    do {
      print(try JSONLine.text(value))
    } catch { throw Failure(.software, "a line of the report cannot be written as JSON") }
  }
}

private struct ProgressLine: Encodable {
  struct Counts: Encodable {
    var phase: String
    var done, total: UInt64
  }

  var progress: Counts
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
