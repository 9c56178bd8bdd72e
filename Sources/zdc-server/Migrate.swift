import ArgumentParser
import Foundation
import Synchronization
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

struct Migrate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Copy everything that a server has into other stores, and verify every hash on the way.",
    discussion: """
      Stop the server first, and start it with the options of the new stores afterwards. Nothing is removed from the old \
      ones. If the command is interrupted, run it again: it continues. A destination must be empty, or left by an \
      earlier run from the same source.

      First everything but large content is verified; if that finds damage, nothing is copied. Large content that is \
      damaged or missing is named, and left out. At the end all rows of both stores are compared. Uploads that have not \
      ended are not copied; clients begin them again. Clients recognize the new stores, and ask once for the list of all \
      their zones. The list of deletions in the old data folder is added to that in the new one; if serve \
      --deletions names another path, copy that list yourself.

      With --json, one object per line: findings, progress after each percent, and a summary.

      EXAMPLES
        zdc-server migrate --from-data /var/lib/zdc --to-data /srv/zdc --to-database postgres://zdc@db.example.org/zdc
        zdc-server migrate --from-config /etc/zdc/server.json --to-config new.json
        zdc-server migrate --from-data /var/lib/zdc --to-data /srv/zdc --to-blobs s3://zdc-blobs@s3.example.org

      \(ExitStatus.help)
      """)

  @Option(name: .long, help: "The configuration file of the server to copy from, for the --from options.")
  var fromConfig: String?

  @Option(name: .long, help: "The data folder to copy from.")
  var fromData: String

  @Option(name: .long, help: "URL of its PostgreSQL database, or ZDC_FROM_DATABASE. (default: SQLite in the folder)")
  var fromDatabase: String?

  @Option(name: .long, help: "The bucket with its large content, as for serve. (default: the data folder)")
  var fromBlobs: String?

  @Option(name: .long, help: "The region of that bucket.")
  var fromBlobsRegion = "us-east-1"

  @Option(name: .long, help: "A file with the key of that bucket. (default: the environment, as for serve)")
  var fromBlobsKeyFile: String?

  @Option(name: .long, help: "A configuration file with the new stores, for the --to options.")
  var toConfig: String?

  @Option(name: .long, help: "The data folder to copy to; created if it does not exist.")
  var toData: String

  @Option(name: .long, help: "URL of its PostgreSQL database, or ZDC_TO_DATABASE. (default: SQLite in the folder)")
  var toDatabase: String?

  @Option(name: .long, help: "The bucket for its large content, as for serve. (default: the data folder)")
  var toBlobs: String?

  @Option(name: .long, help: "The region of that bucket.")
  var toBlobsRegion = "us-east-1"

  @Option(name: .long, help: "A file with the key of that bucket. (default: the environment, as for serve)")
  var toBlobsKeyFile: String?

  @Flag(name: .long, help: "One JSON object per line.")
  var json = false

  func run() async throws {
    umask(0o077)
    let environment = ProcessInfo.processInfo.environment
    let migration = Migration(
      source: StorePlace(
        data: fromData, database: fromDatabase ?? environment["ZDC_FROM_DATABASE"],
        blobs: BlobPlace(address: fromBlobs, region: fromBlobsRegion, keyFile: fromBlobsKeyFile)),
      target: StorePlace(
        data: toData, database: toDatabase ?? environment["ZDC_TO_DATABASE"],
        blobs: BlobPlace(address: toBlobs, region: toBlobsRegion, keyFile: toBlobsKeyFile)),
      printer: CheckPrinter(isJSON: json))
    do {
      guard try await Failure.translating(migration.run) else { throw ExitStatus.damageFound.code }
    } catch let failure as Failure {
      migration.printer.clearProgress()
      failure.report()
      throw failure.status.code
    }
  }
}

/// One run of `zdc-server migrate`.
struct Migration {
  let source: StorePlace
  let target: StorePlace
  let printer: CheckPrinter

  /// - Returns: whether no damage was found.
  func run() async throws -> Bool {
    // A folder at rest is checked as it is. Until then the check itself has its lock.
    if source.database == nil {
      let report = try DataFolder.check(
        path: source.data, files: false, found: printer.show, progress: printer.show)
      guard report.isClean else { return try nothingCopied() }
    } else if !ContentFolder.isBesideDatabase(source.data) {
      throw StoreOpenError(.missing, path: source.data)
    }
    let from = try await source.open(.existing)
    if source.database != nil {
      let check = StoreCheck(found: printer.show, progress: printer.show)
      guard try await check.check(from.metadata).isClean else { return try nothingCopied() }
    }
    var copy = MigrationCopy(rows: from.metadata, blobs: from.blobs, target: target, printer: printer)
    copy.lists = lists
    let isClean = try await copy.run()
    try await from.metadata.close()
    return isClean
  }

  /// An older backup may be restored after the new server has taken over, with its list of deletions.
  private var lists: [String] {
    [source.deletions.path].filter { FileManager.default.fileExists(atPath: $0) }
  }

  private func nothingCopied() throws -> Bool {
    try printer.flush()
    throw Failure(.damageFound, "the source is damaged; nothing was copied")
  }
}

/// Copies rows and content into the stores of a place.
struct MigrationCopy {
  let rows: any RowSource
  let blobs: any BlobStore
  let target: StorePlace
  let printer: CheckPrinter
  /// Lists of deletions, which the target's list begins with.
  var lists: [String] = []
  /// Whether the target is the bucket that has the large content already.
  var isContentThere = false
  /// Large content that is not copied.
  var removed = Set<Deletion.Content>()
  /// The later changes that were repeated in the rows.
  var repeated = RepeatedDeletions()

  /// Everything is in the target before it is one that a server can use. A run that was stopped can be repeated.
  ///
  /// - Returns: whether no damage was found.
  func run() async throws -> Bool {
    let to = try await target.open(.fill)
    if !isContentThere { try await refuseForeignContent(of: to) }
    let shown = ProgressLines(printer)
    let copy = StoreCopy(from: rows, to: to.metadata) { try shown.show($0) }
    let damage: [StoredDamage]
    do { damage = try await copy.copyRows() } catch is StoreNotEmpty { throw notEmpty }
    guard damage.isEmpty else {
      for row in damage { printer.show(CheckFinding(row)) }
      try printer.flush()
      throw Failure(.damageFound, "the source is damaged; the destination is not complete")
    }
    let damagedBlobs =
      isContentThere ? try await findMissingContent(in: to.blobs) : try await copyContent(to: to.blobs, shown)
    guard try await copy.differences().isEmpty else {
      throw Failure(
        .damagedData, "the source has changed since the copy began",
        hint: "empty the destination, and run the command again")
    }
    try await target.deletions.add(from: lists)
    try await copy.finish()
    try await to.metadata.close()
    try printer.flush()
    try shown.finish(damagedBlobs: damagedBlobs, repeated)
    return damagedBlobs == 0
  }

  private func copyContent(to target: any BlobStore, _ shown: ProgressLines) async throws -> Int {
    var damaged = 0
    try await BlobCopy(of: rows, from: blobs, to: target, leavingOut: removed).run(
      found: { blob, problem in
        damaged += 1
        printer.show(CheckFinding(problem, of: blob))
      }, progress: shown.show)
    return damaged
  }

  /// Names the large content that a bucket lacks.
  ///
  /// - Throws: ``Failure`` if it has none: it is not the bucket of this server.
  private func findMissingContent(in bucket: any BlobStore) async throws -> Int {
    let there = Mutex<Set<BlobID>>([])
    try await bucket.forEachBatch { found in there.withLock { $0.formUnion(found) } }
    var (named, missing, last) = (0, 0, BlobID?.none)
    while true {
      let page = try await rows.readRows { [last] in try $0.files(after: last, limit: 1_000) }
      for file in page where file.root != nil && !removed.contains(file.id) {
        named += 1
        guard !there.withLock({ $0.contains(file.id) }) else { continue }
        missing += 1
        printer.show(CheckFinding(.missing, of: file.id))
      }
      guard let end = page.last else { break }
      last = end.id
    }
    guard missing == 0 || missing < named else { throw Self.otherBucket }
    return missing
  }

  private static let otherBucket = Failure(
    .noInput, "the bucket has none of the large content that the backup names",
    hint: "give the bucket of the lost server")

  private var notEmpty: Failure {
    Failure(
      .cannotCreate, "the destination has data of its own, or of another source",
      hint: "give an empty folder, database and bucket")
  }

  /// Rows come first: content without any belongs to something else.
  private func refuseForeignContent(of stores: ServerStores) async throws {
    guard try await stores.metadata.readRows({ try $0.lastKey(of: .users) }) == nil else { return }
    let refusal = notEmpty
    try await stores.blobs.forEachBatch { guard $0.isEmpty else { throw refusal } }
  }
}

/// Shows the progress of a migration, and its summary.
final class ProgressLines: Sendable {
  private struct State {
    var lastPercent = -1
    var rows: UInt64 = 0
    var contentBytes: UInt64 = 0
  }

  private let printer: CheckPrinter
  private let state = Mutex(State())

  init(_ printer: CheckPrinter) { self.printer = printer }

  func show(_ progress: CopyProgress) throws {
    // A total that is not known has no percentage.
    let percent = progress.total > 0 ? Int(min(100, progress.done * 100 / progress.total)) : -1
    let isNew = state.withLock { state in
      switch progress.phase {
      case .copy: state.rows = progress.done
      case .content: state.contentBytes = progress.done
      case .compare: break
      }
      defer { state.lastPercent = percent }
      return percent != state.lastPercent
    }
    if isNew { try printer.show(progress, percent: percent) }
  }

  func finish(damagedBlobs: Int, _ repeated: RepeatedDeletions) throws {
    let (rows, bytes) = state.withLock { ($0.rows, $0.contentBytes) }
    try printer.finish(
      MigrationSummary(rows: rows, contentBytes: bytes, damagedContents: damagedBlobs, repeated: repeated))
  }
}

struct MigrationSummary: Encodable {
  private enum Key: CodingKey { case rows, contentBytes, damagedContents }

  var rows, contentBytes: UInt64
  var damagedContents: Int
  /// Its numbers are in the same JSON object.
  var repeated: RepeatedDeletions

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(rows, forKey: .rows)
    try container.encode(contentBytes, forKey: .contentBytes)
    try container.encode(damagedContents, forKey: .damagedContents)
    try repeated.encode(to: encoder)
  }
}
