internal import GRDB
internal import GRDBSQLite

extension Database {
  /// How many pages this connection has written in all, modulo what fits.
  var pagesWritten: Int32 {
    var (written, highest) = (Int32(0), Int32(0))
    let status = sqlite3_db_status(sqliteConnection, SQLITE_DBSTATUS_CACHE_WRITE, &written, &highest, 0)
    return status == SQLITE_OK ? written : 0
  }
}
