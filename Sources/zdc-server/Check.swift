import ArgumentParser
import Foundation
import ZDCServer
import ZDCServerSQLite

struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Verify the stores of a stopped server: every blob, reference, hash and chain. Changes nothing.",
    discussion: """
      Give the options of zdc-server serve that say where the stores are. Stop the server first, or check a copy of the \
      folder that was taken while it was stopped. Each finding is one line on standard output, with ids but no other user \
      data: damage is acknowledged data that is missing or altered, waste is data that the next collection removes. With \
      --json: one object per finding, then one with the summary.

      Rows of a PostgreSQL database are copied into a temporary file, which needs as much space as they do. Parts of \
      uploads that have not ended are checked in a data folder only.

      EXAMPLES
        zdc-server check --config /etc/zdc/server.json
        zdc-server check --data /var/lib/zdc
        zdc-server check --data /var/lib/zdc --blobs s3://zdc-blobs@s3.example.org
        zdc-server check --data /var/lib/zdc --database postgres://zdc@db.example.org/zdc --json

      \(ExitStatus.help)
      """)

  @Option(name: .long, help: "The server's configuration file, for the options below. Options given here win.")
  var config: String?

  @Option(name: .long, help: "The server's data folder.")
  var data: String

  @OptionGroup var blobOptions: BlobOptions

  @Option(
    name: .long,
    help: "URL of the PostgreSQL database, or ZDC_DATABASE in the environment. (default: SQLite in the data folder)")
  var database: String?

  @Flag(name: .long, help: "One JSON object per line.")
  var json = false

  func run() async throws {
    let printer = CheckPrinter(isJSON: json)
    do {
      let report = try await report(printer)
      try printer.finish(report)
      if !report.isClean { throw ExitStatus.damageFound.code }
    } catch let failure as Failure {
      printer.clearProgress()
      failure.report()
      throw failure.status.code
    }
  }

  private func report(_ printer: CheckPrinter) async throws -> CheckReport {
    let place = StorePlace(
      data: data, database: database ?? ProcessInfo.processInfo.environment["ZDC_DATABASE"], blobs: blobOptions.place)
    return try await Failure.translating { try await StoresCheck(place: place, printer: printer).run() }
  }
}

/// A check of the stores of a place.
struct StoresCheck {
  let place: StorePlace
  let printer: CheckPrinter

  private var check: StoreCheck { StoreCheck(found: printer.show, progress: printer.show) }

  func run() async throws -> CheckReport {
    guard place.database == nil else { return try await checkDatabase() }
    var report = try DataFolder.check(path: place.data, found: printer.show, progress: printer.show)
    guard place.blobs.address != nil else { return report }
    // Until here the check itself had the lock.
    let folder = try ContentFolder(path: place.data, database: .here)
    let blobs = try await place.blobs.existingStore(beside: folder)
    try await check.checkFiles(FolderFiles(path: place.data), in: blobs, report: &report)
    return report
  }

  private func checkDatabase() async throws -> CheckReport {
    guard ContentFolder.isBesideDatabase(place.data) else { throw StoreOpenError(.missing, path: place.data) }
    let stores = try await place.open(.existing)
    var report = try await check.check(stores.metadata)
    try await check.checkFiles(OpenStoreFiles(stores.metadata), in: stores.blobs, report: &report)
    try await stores.metadata.close()
    return report
  }
}
