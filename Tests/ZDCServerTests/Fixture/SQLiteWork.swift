import GRDB
import GRDBSQLite

enum SQLiteWork {
  /// Returns the result of `body` and the number of instructions that SQLite's virtual machine runs for it.
  static func counted<T>(_ db: Database, _ body: () throws -> T) throws -> (T, steps: Int) {
    var steps = 0
    return try withUnsafeMutablePointer(to: &steps) { pointer in
      sqlite3_progress_handler(
        db.sqliteConnection, 1,
        { context in
          context?.assumingMemoryBound(to: Int.self).pointee += 1
          return 0
        }, pointer)
      defer { sqlite3_progress_handler(db.sqliteConnection, 0, nil, nil) }
      return (try body(), pointer.pointee)
    }
  }
}
