import ArgumentParser
import Foundation
import Hummingbird
import Logging
import TodoKit
import ZeroDarkCloud

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the lists in a browser on this machine.",
    discussion: """
      Prints a link with a secret, which only the first browser needs. The keys stay in this process. End it with Ctrl-C.

      EXAMPLES
        zdc-todo serve
        zdc-todo serve --port 8123
      """)
  @Option(help: "The port, on the loopback interface only.") var port = 7350
  @OptionGroup var options: Options

  func run() async throws {
    let manager = try options.open(syncsAutomatically: true)
    let entrance = Guard(port: port)
    var logger = Logger(label: "zdc-todo")
    logger.logLevel = .error
    let link = "http://127.0.0.1:\(port)/?token=\(entrance.token)"
    let application = Application(
      router: Site(manager: manager).router(entrance),
      configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port), serverName: nil),
      onServerRunning: { _ in Output.line(options.json ? Output.json(["link": link]) : "open \(link)") }, logger: logger
    )
    try await application.runService()
    try await manager.close()
  }
}
