import Crypto
import Foundation
import GRDB
import ZeroDarkCloud

// The current speed of the machine: each figure is shown next to one of these.

extension Bench {
  /// Ten thousand rows of 1 KiB in ten durable SQLite transactions, in seconds.
  func rowsYardstick() throws -> Yardstick {
    let database = try plainDatabase()
    let row = Data(repeating: 0x5a, count: 1_024)
    let (time, _) = try secondsAtOnce {
      for _ in 0..<10 {
        try database.write { db in
          let statement = try db.cachedStatement(sql: "INSERT INTO plain (bytes) VALUES (?)")
          for _ in 0..<Self.nodes / 10 { try statement.execute(arguments: [row]) }
        }
      }
    }
    return Yardstick(name: "10,000 rows of 1 KiB, ten SQLite commits", value: time)
  }

  /// Durable SQLite commits of one row each and one round trip to the server, one after the other, in milliseconds.
  ///
  /// - Parameter commits: the number of commits.
  func commitsYardstick(_ server: ServerProcess, commits: Int) async throws -> Yardstick {
    let database = try plainDatabase()
    let row = Data(repeating: 0x5a, count: 1_024)
    var times: [Double] = []
    for _ in 0..<samples {
      let (time, _) = try await seconds {
        for _ in 0..<commits {
          try await database.write { try $0.execute(sql: "INSERT INTO plain (bytes) VALUES (?)", arguments: [row]) }
        }
        _ = try await server.get("/healthz")
      }
      times.append(time * 1_000)
    }
    return Yardstick(name: "\(commits) SQLite commits + 1 round trip, p50", value: median(times))
  }

  private func plainDatabase() throws -> DatabaseQueue {
    var configuration = GRDB.Configuration()
    configuration.prepareDatabase { db in
      try db.execute(sql: "PRAGMA synchronous = FULL")
    }
    configuration.journalMode = .wal
    let database = try DatabaseQueue(
      path: newFolder().appendingPathComponent("plain.sqlite").path, configuration: configuration)
    try database.write { try $0.execute(sql: "CREATE TABLE plain (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)") }
    return database
  }

  /// AES-256-GCM over chunks of 16 KiB, then SHA-256 over the result, one core, in GB/s.
  func cipherYardstick() throws -> Yardstick {
    let key = SymmetricKey(size: .bits256)
    let chunk = Data(repeating: 0x5a, count: 16 << 10)
    let chunks = (64 << 20) / chunk.count
    var values: [Double] = []
    for _ in 0..<max(runs, 3) {
      let (time, _) = try secondsAtOnce {
        for _ in 0..<chunks {
          let box = try AES.GCM.seal(chunk, using: key)
          _ = SHA256.hash(data: box.ciphertext)
        }
      }
      values.append(Double(chunks * chunk.count) / time / 1e9)
    }
    return Yardstick(name: "AES-256-GCM, then SHA-256, 16 KiB", value: median(values))
  }

  /// A program that only starts and exits, in seconds.
  func programYardstick(_ name: String, _ arguments: [String]) throws -> Yardstick {
    var times: [Double] = []
    for _ in 0..<max(runs, 3) {
      let (time, _) = try secondsAtOnce { try Program(name).run(arguments) }
      times.append(time)
    }
    return Yardstick(name: "\(name) \(arguments.joined(separator: " "))", value: median(times))
  }
}
