import Testing

@testable import ZDCServerPostgres

/// The binding to libpq, against a real server.
@Suite struct PostgresConnectionTests {
  private func connection() throws -> PostgresConnection {
    let server = try TestPostgres.shared()
    return try PostgresConnection(server.url(of: "postgres"))
  }

  @Test func valuesOfEachTypeReturnAsTheyWere() throws {
    let db = try connection()
    let large = [UInt8](repeating: 7, count: 3 << 20)
    let sent: [PostgresValue] = [.int(.min), .int(nil), .bytes([]), .bytes(nil), .bytes(large), .text("ä")]
    let sql = "SELECT $1::int8, $2::int8, $3::bytea, $4::bytea, $5::bytea, $6::text, -2::int4, -3::int2, true"
    let isSame = try db.all(sql, sent) { row in
      #expect(row.int(0) == .min && row.isNull(1) && !row.isNull(2) && row.bytes(2) == [] && row.isNull(3))
      #expect(row.bytes(4) == large && row.text(5) == "ä")
      return row.int(6) == -2 && row.int(7) == -3 && row.int(8) == 1
    }
    #expect(isSame == [true])
  }

  @Test func arraysKeepOrder_emptyElements_andNulls() throws {
    let db = try connection()
    let numbers: [Int64?] = [3, nil, -1, .max]
    let bytes: [[UInt8]?] = [[], [0, 255], nil, [1]]
    let rows = try db.all(
      "SELECT n, b FROM unnest($1::int8[], $2::bytea[]) AS w(n, b)", .ints(numbers), .byteArrays(bytes)
    ) { ($0.optionalInt(0), $0.optionalBytes(1)) }
    #expect(rows.map(\.0) == numbers && rows.map(\.1) == bytes)
    #expect(try db.all("SELECT unnest($1::int8[])", .ints([])) { $0.int(0) }.isEmpty)
  }

  @Test func aRefusalHasItsState_andTheConnectionWorksAfterwards() throws {
    let db = try connection()
    try db.run("CREATE TEMP TABLE names(name bytea PRIMARY KEY)")
    #expect(try db.run("INSERT INTO names SELECT unnest($1::bytea[])", .byteArrays([[1], [2]])) == 2)
    let error = #expect(throws: PostgresError.self) { try db.run("INSERT INTO names VALUES ($1)", .bytes([1])) }
    #expect(error?.state == "23505")
    #expect(!db.isLost && db.isIdle)
    #expect(throws: PostgresError.self) { try db.run("SELECT none") }
    #expect(try db.all("SELECT name FROM names ORDER BY name") { $0.bytes(0) } == [[1], [2]])
  }

  /// - A statement in the middle of a pipeline fails
  /// => its error is thrown, no statement of the transaction has an effect, and new statements among them work later
  @Test func oneFailureEndsThePipeline() throws {
    let db = try connection()
    try db.run("CREATE TEMP TABLE numbers(number int8 PRIMARY KEY)")
    db.enqueue("BEGIN")
    db.enqueue("INSERT INTO numbers VALUES ($1)", .int(1))
    db.enqueue("INSERT INTO numbers VALUES ($1)", .int(1))
    db.enqueue("INSERT INTO numbers VALUES ($1 + 1)", .int(1))
    let error = #expect(throws: PostgresError.self) { try db.run("COMMIT") }
    #expect(error?.state == "23505")
    try db.run("ROLLBACK")
    #expect(try db.all("SELECT number FROM numbers") { $0.int(0) }.isEmpty)
    #expect(try db.run("INSERT INTO numbers VALUES ($1 + 1)", .int(1)) == 1)
    #expect(try db.first("SELECT number FROM numbers") { $0.int(0) } == 2)
  }

  @Test func aClosureThatThrowsLeavesTheConnectionUsable() throws {
    struct Stop: Error {}
    let db = try connection()
    #expect(throws: Stop.self) { try db.all("SELECT 1") { _ in throw Stop() } }
    #expect(try db.first("SELECT 2") { $0.int(0) } == 2)
  }

  /// - The server ends the connection
  /// => the next statement fails as unavailable, and the connection says that it is lost
  @Test func aLostConnectionIsNoticed() throws {
    let (db, other) = (try connection(), try connection())
    let process = try #require(try db.first("SELECT pg_backend_pid()") { $0.int(0) })
    try other.run("SELECT pg_terminate_backend($1::int4, 60000)", .int(process))
    let error = #expect(throws: PostgresError.self) {
      while true { try db.run("SELECT 1") }
    }
    #expect(error?.isUnavailable == true)
    #expect(db.isLost)
  }

  @Test func aServerThatIsNotThereIsAnError() throws {
    let error = #expect(throws: PostgresError.self) { try PostgresConnection("postgres:///x?host=/nowhere") }
    #expect(error?.kind == .connection && error?.message.contains("/nowhere") == true)
  }
}
