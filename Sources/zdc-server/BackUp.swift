import ArgumentParser
import Foundation
import ZDCServer
import ZDCServerPostgres
import ZDCServerSQLite

struct BackUp: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copy everything that a server has, as of one moment, into a folder. The server may run.",
    discussion: """
      Give the options of zdc-server serve that say where the stores are. The backup is a folder with a SQLite database, \
      large content and a manifest, whatever stores the server has. On the same file system, content takes no \
      additional space: files never change once they are complete, so the backup has hard links to them. Given the folder of an earlier backup, the \
      command brings it up to date, and copies only content that is new.

      Large content in an object store is not copied; keep versions of its objects instead. The database holds no keys \
      to content, but it has sessions and members: protect a backup like the server.

      Keep the list of deletions apart from backups (serve --deletions): restore needs its newest version.

      EXAMPLES
        zdc-server backup /backup/zdc --config /etc/zdc/server.json
        zdc-server backup /backup/zdc --data /var/lib/zdc
        zdc-server verify /backup/zdc
        zdc-server restore /backup/zdc --to-data /srv/zdc --deletions /var/lib/zdc/deletions

      \(ExitStatus.help)
      """)

  @Argument(help: "The folder of the backup; created if it does not exist.")
  var folder: String

  @Option(name: .long, help: "The server's configuration file, for the options below. Options given here win.")
  var config: String?

  @Option(name: .long, help: "The server's data folder.")
  var data: String

  @Option(
    name: .long,
    help: "URL of the PostgreSQL database, or ZDC_DATABASE in the environment. (default: SQLite in the data folder)")
  var database: String?

  @Flag(name: .long, help: "One JSON object per line.")
  var json = false

  func run() async throws {
    umask(0o077)
    let printer = CheckPrinter(isJSON: json)
    do {
      try printer.finish(try await Failure.translating { try await make(ProgressLines(printer)) })
    } catch let failure as Failure {
      printer.clearProgress()
      failure.report()
      throw failure.status.code
    }
  }

  private func make(_ shown: ProgressLines) async throws -> Backup.Manifest {
    let now = UInt64(Date().timeIntervalSince1970 * 1_000)
    let url = database ?? ProcessInfo.processInfo.environment["ZDC_DATABASE"]
    let rows = url.map { PostgresSnapshot(url: $0) }
    defer { rows?.close() }
    if rows != nil, !ContentFolder.isBesideDatabase(data) { throw StoreOpenError(.missing, path: data) }
    return try await Backup(path: folder).make(of: data, rows: rows, now: now) { try shown.show($0) }
  }
}

struct Verify: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Verify a backup: its manifest, every blob, reference, hash and chain. Changes nothing.",
    discussion: """
      Prints findings and a summary like zdc-server check.

      \(ExitStatus.help)
      """)

  @Argument(help: "The folder of the backup.")
  var folder: String

  @Flag(name: .long, help: "One JSON object per line.")
  var json = false

  func run() async throws {
    let printer = CheckPrinter(isJSON: json)
    do {
      let report = try await Failure.translating {
        try Backup(path: folder).check(found: printer.show, progress: printer.show)
      }
      try printer.finish(report)
      if !report.isClean { throw ExitStatus.damageFound.code }
    } catch let failure as Failure {
      printer.clearProgress()
      failure.report()
      throw failure.status.code
    }
  }
}

struct Restore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Copy a backup into new stores, and verify every hash on the way.",
    discussion: """
      The destination must be empty, or left by an earlier run from the same backup and lists. If the command is \
      interrupted, run it again: it continues, and no server opens the new stores before it has ended. Start the server \
      with the options of the new stores afterwards. A copy of the backup's database is in the folder for temporary files \
      (TMPDIR) meanwhile; an interrupted run leaves it there, as zdc-restore-*.

      With --deletions, what came after the backup and must not be undone is repeated: accounts are closed, devices are \
      removed, accounts are suspended, and changes of keys, words and handles are made again, so that old words do not log \
      in. Without the list, devices that have seen such a change stop syncing (identityChainRollback). Large content \
      that was removed is left out: zdc-server check then reports content that is missing where a node still names it. \
      Give the list that the lost server wrote, in its data folder or at the path of serve --deletions; after several \
      servers, the list of each. The new data folder gets a list with all of them.

      If the backup has no large content because that is in an object store, give the same bucket: it is used as it is.

      Clients notice that the server lacks what they have seen. Each user is asked once, and devices send again what was \
      lost.

      EXAMPLES
        zdc-server restore /backup/zdc --to-data /srv/zdc --deletions /safe/deletions
        zdc-server restore /backup/zdc --to-data /srv/zdc --to-database postgres://zdc@db.example.org/zdc \\
          --to-blobs s3://zdc-blobs@s3.example.org --deletions /safe/deletions-a --deletions /safe/deletions-b

      \(ExitStatus.help)
      """)

  @Argument(help: "The folder of the backup.")
  var folder: String

  @Option(name: .long, help: "A configuration file with the new stores, for the --to options.")
  var toConfig: String?

  @Option(name: .long, help: "The data folder to restore to; created if it does not exist.")
  var toData: String

  @Option(name: .long, help: "URL of its PostgreSQL database, or ZDC_TO_DATABASE. (default: SQLite in the folder)")
  var toDatabase: String?

  @Option(name: .long, help: "The bucket for its large content, as for serve. (default: the data folder)")
  var toBlobs: String?

  @Option(name: .long, help: "The region of that bucket.")
  var toBlobsRegion = "us-east-1"

  @Option(name: .long, help: "A file with the key of that bucket. (default: the environment, as for serve)")
  var toBlobsKeyFile: String?

  @Option(name: .long, help: "The list of deletions that the lost server wrote. Repeatable.")
  var deletions: [String] = []

  @Flag(name: .long, help: "One JSON object per line.")
  var json = false

  func run() async throws {
    umask(0o077)
    let printer = CheckPrinter(isJSON: json)
    do {
      guard try await Failure.translating({ try await restore(printer) }) else { throw ExitStatus.damageFound.code }
    } catch let failure as Failure {
      printer.clearProgress()
      failure.report()
      throw failure.status.code
    }
  }

  private func restore(_ printer: CheckPrinter) async throws -> Bool {
    let backup = Backup(path: folder)
    let isContentElsewhere = try backup.verifiedManifest().isContentElsewhere
    let target = StorePlace(
      data: toData, database: toDatabase ?? ProcessInfo.processInfo.environment["ZDC_TO_DATABASE"],
      blobs: BlobPlace(address: toBlobs, region: toBlobsRegion, keyFile: toBlobsKeyFile))
    let known = try await Deletions(paths: deletions)
    if isContentElsewhere { try await keepBucket(of: backup, at: target) }
    let content = try backup.contentStore()
    // Deletions are repeated in a copy of the backup, so that every run copies the same rows.
    return try await backup.withRows { rows in
      var copy = MigrationCopy(rows: rows, blobs: content, target: target, printer: printer)
      (copy.lists, copy.removed, copy.isContentThere) = (known.paths, known.contents, isContentElsewhere)
      copy.repeated = try await known.repeatAll(in: rows)
      return try await copy.run()
    }
  }

  /// The new server continues to use the bucket that has the backup's large content.
  private func keepBucket(of backup: Backup, at target: StorePlace) async throws {
    guard toBlobs != nil else {
      throw Failure(
        .usage, "the large content of this backup is in an object store", hint: "give the same bucket: --to-blobs")
    }
    let folder = try ContentFolder(path: target.data, database: target.database == nil ? .here : .elsewhere)
    guard try folder.objectStoreOwner() == nil else { return }
    try await folder.createObjectStoreOwner(backup.objectStoreOwner())
  }
}
