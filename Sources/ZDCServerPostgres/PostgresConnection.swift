#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A query whose rows are passed on one by one.
struct PostgresQuery {
  let sql: String
  let values: [PostgresValue]
  let row: (PostgresRow) throws -> Void

  init(_ sql: String, _ values: [PostgresValue], row: @escaping (PostgresRow) throws -> Void) {
    (self.sql, self.values, self.row) = (sql, values, row)
  }
}

/// One connection, used by one thread.
///
/// It is always in libpq's pipeline mode: ``enqueue(_:_:)`` only collects statements, and the next query sends all of
/// them with itself in one round trip.
final class PostgresConnection {
  private struct Call {
    var sql: String
    var values: [PostgresValue]
  }

  private let library: LibPQ
  private let handle: LibPQ.Connection
  private var names: [String: String] = [:]
  private var lastName = 0
  private var waiting: [Call] = []
  /// Whether a failure has made the connection useless.
  private(set) var isLost = false

  /// Opens a connection; blocks until it is open.
  ///
  /// - Parameter settings: statements that run first, such as `SET`.
  /// - Throws: ``PostgresError``.
  init(_ url: String, settings: [String] = []) throws {
    library = try LibPQ.loaded()
    guard let handle = Self.open(url, library) else { throw PostgresError(.connection, "out of memory") }
    self.handle = handle
    guard library.status(handle) == Status.connected else {
      throw PostgresError(.connection, Self.text(library.connectionError(handle)))
    }
    // Notices would go to standard error, with names of tables and values of rows.
    _ = library.setNoticeProcessor(handle, { _, _ in }, nil)
    guard library.enterPipeline(handle) == 1 else { throw failure() }
    for sql in settings { enqueue(sql) }
    try flush()
  }

  deinit { library.finish(handle) }

  /// Without these, a connection to a machine that is gone waits as long as the system does: minutes, or two hours.
  private static let bounds = [
    ("connect_timeout", "10"), ("keepalives_idle", "10"), ("keepalives_interval", "5"), ("keepalives_count", "3"),
    ("tcp_user_timeout", "30000"),
  ]

  /// Later parameters win, so the URL may have other bounds.
  private static func open(_ url: String, _ library: LibPQ) -> LibPQ.Connection? {
    let parameters = bounds + [("dbname", url)]
    let texts = parameters.flatMap { [strdup($0.0), strdup($0.1)] }
    defer { for text in texts { free(text) } }
    func column(_ index: Int) -> [LibPQ.Text?] {
      parameters.indices.map { texts[2 * $0 + index].map { LibPQ.Text($0) } } + [nil]
    }
    return library.connect(column(0), column(1), 1)
  }

  private enum Status {
    static let connected: Int32 = 0
    static let commandDone: Int32 = 1
    static let rows: Int32 = 2
    static let pipelineEnd: Int32 = 10
    static let pipelineAborted: Int32 = 11
    static let outsideTransaction: Int32 = 0
    static let failedTransaction: Int32 = 3
  }

  /// Whether no transaction is open.
  var isIdle: Bool { library.transactionStatus(handle) == Status.outsideTransaction }

  /// Whether a statement of the open transaction has failed. A COMMIT would then roll it back without an error.
  var hasFailed: Bool { library.transactionStatus(handle) == Status.failedTransaction }

  /// Adds a statement to those that the next query sends. Its failure is thrown there.
  func enqueue(_ sql: String, _ values: PostgresValue...) { enqueue(sql, values) }

  func enqueue(_ sql: String, _ values: [PostgresValue]) { waiting.append(Call(sql: sql, values: values)) }

  /// Sends the collected statements and waits until they are done.
  func flush() throws { try send { _, _ in } }

  /// Forgets the collected statements.
  func discard() { waiting = [] }

  func all<T>(_ sql: String, _ values: PostgresValue..., row read: (PostgresRow) throws -> T) throws -> [T] {
    try all(sql, values, row: read)
  }

  func all<T>(_ sql: String, _ values: [PostgresValue], row read: (PostgresRow) throws -> T) throws -> [T] {
    var found: [T] = []
    enqueue(sql, values)
    let last = waiting.count - 1
    try send { call, result in
      guard call == last else { return }
      found.reserveCapacity(Int(library.rowCount(result)))
      try forEachRow(of: result) { found.append(try read($0)) }
    }
    return found
  }

  /// Runs queries in one round trip, and passes the rows of each to it.
  func fetch(_ queries: [PostgresQuery]) throws {
    let first = waiting.count
    for query in queries { enqueue(query.sql, query.values) }
    try send { call, result in
      if call >= first { try forEachRow(of: result, queries[call - first].row) }
    }
  }

  private func forEachRow(of result: LibPQ.Result, _ read: (PostgresRow) throws -> Void) throws {
    for index in 0..<library.rowCount(result) {
      try read(PostgresRow(library: library, result: result, index: index))
    }
  }

  func first<T>(_ sql: String, _ values: PostgresValue..., row read: (PostgresRow) throws -> T) throws -> T? {
    try all(sql, values, row: read).first
  }

  /// Runs a statement; returns the number of rows that it changed.
  @discardableResult
  func run(_ sql: String, _ values: PostgresValue...) throws -> Int {
    var count = 0
    enqueue(sql, values)
    try send { count = Int(Self.text(library.changedRows($1))) ?? 0 }
    return count
  }

  /// Waits for notifications of channels that this connection listens to; returns the payloads of those that have come.
  func notifications(waitingMs: Int32) throws -> [String] {
    var waited = pollfd(fd: library.socket(handle), events: Int16(POLLIN), revents: 0)
    _ = poll(&waited, 1, waitingMs)
    guard library.consumeInput(handle) == 1, library.status(handle) == Status.connected else { throw failure() }
    var payloads: [String] = []
    while let notification = library.notification(handle) {
      payloads.append(Self.text(notification.load(as: LibPQ.Notification.self).payload))
      library.free(notification)
    }
    return payloads
  }

  // MARK: - Sending

  /// - Parameter read: called with the number and the result of each statement.
  private func send(_ read: (Int, LibPQ.Result) throws -> Void) throws {
    guard !waiting.isEmpty else { return }
    let calls = waiting
    waiting = []
    var expected: [(isCall: Bool, sql: String)] = []
    for call in calls {
      if try prepareIfNew(call) { expected.append((false, call.sql)) }
      try sendExecution(of: call)
      expected.append((true, call.sql))
    }
    guard library.sync(handle) == 1 else { throw failure() }
    try receive(expected, read)
  }

  /// - Returns: whether a PREPARE was sent, whose result comes before that of the statement.
  private func prepareIfNew(_ call: Call) throws -> Bool {
    guard names[call.sql] == nil else { return false }
    lastName += 1
    let name = "s\(lastName)"
    let types = call.values.map(\.type)
    guard library.prepare(handle, name, call.sql, Int32(types.count), types) == 1 else { throw failure() }
    names[call.sql] = name
    return true
  }

  private func sendExecution(of call: Call) throws {
    guard let name = names[call.sql] else { throw failure() }
    let encoded = call.values.map(\.encoded)
    let lengths = encoded.map { Int32(clamping: $0?.count ?? 0) }
    let formats = [Int32](repeating: 1, count: encoded.count)
    let bytes = encoded.flatMap { $0 ?? [] }
    let sent = bytes.withUnsafeBytes { buffer in
      // An empty value needs an address as well: null means NULL.
      let start = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
      return withUnsafePointer(to: CChar(0)) { empty in
        var offset = 0
        let addresses: [LibPQ.Text?] = encoded.map { value in
          guard let value else { return nil }
          defer { offset += value.count }
          return value.isEmpty ? empty : start.map { $0 + offset }
        }
        return library.execute(handle, name, Int32(encoded.count), addresses, lengths, formats, 1)
      }
    }
    guard sent == 1 else { throw failure() }
  }

  /// Reads all results up to the end of the pipeline, also after a failure: the connection is then usable again.
  private func receive(
    _ expected: [(isCall: Bool, sql: String)], _ read: (Int, LibPQ.Result) throws -> Void
  ) throws {
    var first: (any Error)?
    var calls = 0
    for statement in expected {
      guard let result = library.result(handle) else { throw failure() }
      do {
        defer { library.clear(result) }
        try check(result)
        if statement.isCall {
          defer { calls += 1 }
          try read(calls, result)
        }
      } catch {
        if first == nil { first = error }
        // The next call prepares the statement again.
        if !statement.isCall { names[statement.sql] = nil }
        let isEnded = (error as? PostgresError)?.isUnavailable ?? false
        if isEnded || library.status(handle) != Status.connected { throw failure(error) }
      }
      // Each statement's results end with null.
      while let more = library.result(handle) { library.clear(more) }
    }
    guard let end = library.result(handle) else { throw failure() }
    library.clear(end)
    if let first { throw first }
  }

  private func check(_ result: LibPQ.Result) throws {
    let status = library.resultStatus(result)
    guard status != Status.commandDone, status != Status.rows else { return }
    guard status != Status.pipelineAborted else {
      throw PostgresError(.statement("25P02"), "an earlier statement failed")
    }
    let state = Self.text(library.resultField(result, Int32(UInt8(ascii: "C"))))
    let message = Self.text(library.resultField(result, Int32(UInt8(ascii: "M"))))
    throw PostgresError(state.isEmpty ? .connection : .statement(state), message)
  }

  private func failure(_ error: (any Error)? = nil) -> PostgresError {
    isLost = true
    if let error = error as? PostgresError, error.kind == .connection || error.isUnavailable { return error }
    return PostgresError(.connection, Self.text(library.connectionError(handle)))
  }

  private static func text(_ text: LibPQ.Text?) -> String {
    let text = text.map { String(cString: $0) } ?? ""
    return String(text.prefix { $0 != "\n" })
  }
}
