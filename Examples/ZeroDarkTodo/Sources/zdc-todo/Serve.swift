import ArgumentParser
import Foundation
import Hummingbird
import Logging
import Synchronization
import TodoKit
import ZeroDarkCloud

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the lists in a browser on this machine.",
    discussion: """
      Prints a link with a secret token. Anyone with the link can open the page until the process ends. The keys stay in \
      this process. End it with Ctrl-C.

      EXAMPLES
        zdc-todo serve
        zdc-todo serve --port 8123
      """)
  @Option(help: "The port, on the loopback interface only.") var port = 7350
  @OptionGroup var options: Options

  func run() async throws {
    let manager = try options.open(syncsAutomatically: true)
    let access = Guard(port: port)
    let address = "http://127.0.0.1:\(port)/?token=\(access.token)"
    let link = options.json ? try Output.json(["link": address]) : "open \(address)"
    var logger = Logger(label: "zdc-todo")
    logger.logLevel = .error
    let isRunning = Mutex(false)
    let application = Application(
      router: Site(manager: manager).router(access),
      configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port), serverName: nil),
      onServerRunning: { _ in
        isRunning.withLock { $0 = true }
        Output.line(link)
      }, logger: logger)
    do {
      try await application.runService()
    } catch  where !isRunning.withLock({ $0 }) {
      throw Failure(.unavailable, "port", "cannot listen on port \(port): \(error)")
    }
    try await manager.close()
  }
}
