import ArgumentParser
import ZDCServer

struct Version: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Print the version.")

  func run() {
    print("zdc-server \(ServerVersion.text), protocol ZDC/1")
  }
}
