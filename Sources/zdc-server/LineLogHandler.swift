import Foundation
import Logging

/// Writes one line per event to standard error: `time level message key=value …`, or one JSON object.
struct LineLogHandler: LogHandler {
  let format: LogFormat
  var logLevel = Logger.Level.notice
  var metadata = Logger.Metadata()
  var metadataProvider: Logger.MetadataProvider?

  init(format: LogFormat) {
    self.format = format
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
    let fields = all.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value)") }
    let line = format == .json ? json(event, fields) : text(event, fields)
    FileHandle.standardError.write(Data((line + "\n").utf8))
  }

  private var time: String { Date.now.ISO8601Format(.init(includingFractionalSeconds: true)) }

  private func text(_ event: LogEvent, _ fields: [(String, String)]) -> String {
    let shown = fields.map { "\($0.0)=\($0.1.contains(" ") ? "\"\($0.1)\"" : $0.1)" }
    return ([time, "\(event.level)", "\(event.message)"] + shown).joined(separator: " ")
  }

  private func json(_ event: LogEvent, _ fields: [(String, String)]) -> String {
    var object = Dictionary(fields, uniquingKeysWith: { first, _ in first })
    object["time"] = time
    object["level"] = "\(event.level)"
    object["message"] = "\(event.message)"
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(object)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
  }
}
