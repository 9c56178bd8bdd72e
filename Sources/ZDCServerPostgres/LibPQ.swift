#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The functions of libpq that the store calls.
///
/// The library is loaded when the first connection is opened. So the server needs it only where it uses PostgreSQL, and
/// building needs no headers.
struct LibPQ: Sendable {
  typealias Connection = OpaquePointer
  typealias Result = OpaquePointer
  typealias Text = UnsafePointer<CChar>

  let connect: @convention(c) (UnsafePointer<Text?>, UnsafePointer<Text?>, Int32) -> Connection?
  let finish: @convention(c) (Connection) -> Void
  let status: @convention(c) (Connection) -> Int32
  let connectionError: @convention(c) (Connection) -> Text?
  let transactionStatus: @convention(c) (Connection) -> Int32
  let enterPipeline: @convention(c) (Connection) -> Int32
  let sync: @convention(c) (Connection) -> Int32
  let prepare: @convention(c) (Connection, Text, Text, Int32, UnsafePointer<UInt32>?) -> Int32
  let execute:
    @convention(c) (
      Connection, Text, Int32, UnsafePointer<Text?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?, Int32
    ) -> Int32
  let result: @convention(c) (Connection) -> Result?
  let resultStatus: @convention(c) (Result) -> Int32
  let resultField: @convention(c) (Result, Int32) -> Text?
  let clear: @convention(c) (Result) -> Void
  let rowCount: @convention(c) (Result) -> Int32
  let changedRows: @convention(c) (Result) -> Text?
  let isNull: @convention(c) (Result, Int32, Int32) -> Int32
  let length: @convention(c) (Result, Int32, Int32) -> Int32
  let value: @convention(c) (Result, Int32, Int32) -> UnsafePointer<UInt8>?
  let socket: @convention(c) (Connection) -> Int32
  let consumeInput: @convention(c) (Connection) -> Int32
  /// Returns a ``Notification``.
  let notification: @convention(c) (Connection) -> UnsafeMutableRawPointer?
  let free: @convention(c) (UnsafeMutableRawPointer?) -> Void
  let setNoticeProcessor:
    @convention(c) (
      Connection, (@convention(c) (UnsafeMutableRawPointer?, Text?) -> Void)?, UnsafeMutableRawPointer?
    ) -> OpaquePointer?

  /// The layout of libpq's `PGnotify`.
  struct Notification {
    let channel: Text?
    let process: Int32
    let payload: Text?
    let next: OpaquePointer?
  }

  /// Loads the library once.
  ///
  /// - Throws: ``PostgresError`` if this machine does not have it.
  static func loaded() throws -> LibPQ { try library.get() }

  private static let library = Swift.Result { try LibPQ() }

  #if canImport(Darwin)
    private static let names = ["libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib"]
  #else
    private static let names = ["libpq.so.5"]
  #endif

  private init() throws {
    guard let handle = Self.names.lazy.compactMap({ dlopen($0, RTLD_NOW | RTLD_LOCAL) }).first else {
      throw PostgresError(
        .missingLibrary, "libpq 5 is not installed; install the package libpq5, or libpq with Homebrew")
    }
    // The handle stays open: the functions are used until the process ends.
    func function<Function>(_ name: String) throws -> Function {
      guard let address = dlsym(handle, name) else {
        throw PostgresError(.missingLibrary, "libpq has no function \(name); install version 14 or newer")
      }
      return unsafeBitCast(address, to: Function.self)
    }
    connect = try function("PQconnectdbParams")
    finish = try function("PQfinish")
    status = try function("PQstatus")
    connectionError = try function("PQerrorMessage")
    transactionStatus = try function("PQtransactionStatus")
    enterPipeline = try function("PQenterPipelineMode")
    sync = try function("PQpipelineSync")
    prepare = try function("PQsendPrepare")
    execute = try function("PQsendQueryPrepared")
    result = try function("PQgetResult")
    resultStatus = try function("PQresultStatus")
    resultField = try function("PQresultErrorField")
    clear = try function("PQclear")
    rowCount = try function("PQntuples")
    changedRows = try function("PQcmdTuples")
    isNull = try function("PQgetisnull")
    length = try function("PQgetlength")
    value = try function("PQgetvalue")
    socket = try function("PQsocket")
    consumeInput = try function("PQconsumeInput")
    notification = try function("PQnotifies")
    free = try function("PQfreemem")
    setNoticeProcessor = try function("PQsetNoticeProcessor")
  }
}
