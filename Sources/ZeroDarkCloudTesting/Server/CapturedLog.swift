public import Logging
internal import Synchronization

/// Log lines, kept in memory: `level message key=value …`.
///
/// ```swift
/// try await a.create("/a-private-name", "a private text")
/// try await a.sync()
/// #expect(!a.log.text.contains("private") && !server.log.text.contains("private"))
/// ```
public final class CapturedLog: Sendable {
  private let kept = Mutex<[String]>([])

  /// Creates a log without lines.
  public init() {}

  /// The lines so far, oldest first.
  public var lines: [String] { kept.withLock { $0 } }

  /// The lines so far as one text.
  public var text: String { lines.joined(separator: "\n") }

  /// Returns a logger that writes to this log, at every level.
  public func logger(label: String) -> Logger {
    var logger = Logger(label: label) { _ in Handler(log: self) }
    logger.logLevel = .trace
    return logger
  }

  /// Adds a line manually.
  public func append(_ line: String) { kept.withLock { $0.append(line) } }

  private struct Handler: LogHandler {
    let log: CapturedLog
    var logLevel = Logger.Level.trace
    var metadata = Logger.Metadata()
    var metadataProvider: Logger.MetadataProvider?

    init(log: CapturedLog) {
      self.log = log
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
      let fields = all.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      log.append((["\(event.level)", "\(event.message)"] + fields).joined(separator: " "))
    }
  }
}
