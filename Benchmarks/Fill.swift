import ArgumentParser
import Foundation
import ZeroDarkCloud

/// Fills a server with accounts, each made and filled by a real client. `Scripts/bench --large-server` measures what an
/// operator does with such a server.
struct Fill: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Fills a server with accounts that have folders, small files and one large file each.",
    shouldDisplay: false)

  @Option var server: String
  @Option(help: "For the databases of clients, which are removed.") var folder: String
  @Option var accounts: Int
  @Option(help: "Nodes of each account.") var nodes: Int
  @Option(help: "The words of the last account are written there.") var words: String

  private static let clients = 4

  func run() async throws {
    guard let url = URL(string: server) else { throw BenchError("no address") }
    let filling = Filling(server: url, folder: URL(fileURLWithPath: folder), nodes: nodes)
    let accounts = accounts
    let words = try await withThrowingTaskGroup(of: [String].self) { group in
      for first in 0..<Self.clients {
        group.addTask {
          var words: [String] = []
          for number in stride(from: first, to: accounts, by: Self.clients) {
            words = try await filling.fill(number)
            if (number + 1) % max(accounts / 100, 1) == 0 { note("\(number + 1) of \(accounts) accounts") }
          }
          return words
        }
      }
      return try await group.reduce([]) { $1.isEmpty ? $0 : $1 }
    }
    try Data(words.joined(separator: " ").utf8).write(to: URL(fileURLWithPath: self.words))
  }
}

private struct Filling: Sendable {
  var server: URL
  var folder: URL
  var nodes: Int

  private static let largeBytes = 70_000
  private static let largeName = "large"

  /// - Returns: The account's words.
  func fill(_ number: Int) async throws -> [String] {
    let folder = folder.appendingPathComponent("\(number)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let device = try Device(server: server, folder: folder, app: Self.app)
    let (user, words) = try await device.createAccount()
    try await create(device, user)
    try await device.app.pushed.wait(until: nodes, seconds: 600)
    try await device.close()
    try FileManager.default.removeItem(at: folder)
    return words
  }

  /// Folders of twenty nodes, the folder included, and one large file.
  private func create(_ device: Device, _ user: String) async throws {
    try await device.create([Self.largeName], user: user)
    for start in stride(from: 1, to: nodes, by: 20) {
      let name = "folder \(start)"
      try await device.create([name], user: user)
      let files = (start + 1..<min(start + 20, nodes)).map { "file \($0).txt" }
      if !files.isEmpty { try await device.create(files, below: [name], user: user) }
    }
  }

  private static var app: BenchApp {
    BenchApp(
      content: ZDCData(data: Data(repeating: 0x61, count: Bench.contentBytes)),
      large: (largeName, ZDCData(data: Data(repeating: 0x62, count: largeBytes))))
  }
}
