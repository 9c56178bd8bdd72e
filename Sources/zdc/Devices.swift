import ArgumentParser
import ZDCCommands

struct DeviceCommands: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices", abstract: "List the account's devices, add one, or log one out.",
    subcommands: [ListDevices.self, Link.self, Revoke.self])
}

extension DeviceCommands {
  struct ListDevices: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the account's devices, as the server knows them.",
      usage: "zdc devices list [options]",
      discussion: """
        EXAMPLES
          zdc devices list
          zdc devices list --json

        JSON, one device a line: {"addedMs","deviceID","isCurrent","lastLoginMs"?} with times in milliseconds since 1970.
        """)

    @OptionGroup var common: CommonOptions

    func run() async throws {
      try await Devices.list(common.options)
    }
  }

  struct Link: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add a device to the account by the code that it shows.",
      usage: "zdc devices link [options] code",
      discussion: """
        The new device gets full access, as if it had the 24 words. Use only a code shown on your own device: that device gets the account. \
        Both devices then show six digits, which must be the same. Asks for confirmation, or takes --yes.

        EXAMPLES
          zdc --profile new account login --server https://sync.example.org --link   (on the new device)
          zdc devices link zdclink:1:…                                               (here)

        JSON: {"digits"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The code that the new device shows; it begins with zdclink:.")
    var code: String
    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    func run() async throws {
      try await Devices.link(common.options, code: code, isConfirmed: yes)
    }
  }

  struct Revoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Log out a device.",
      usage: "zdc devices revoke [options] device",
      discussion: """
        Ends the device's sessions immediately, and makes the server forget its key. The device keeps its files and the words, with which it \
        can log in again. If it is lost or in other hands, also run zdc account rotate-words and zdc account rotate-keys --compromised.

        EXAMPLES
          zdc devices list
          zdc devices revoke ybndrfg8ejkmcpqxot1uwisza3

        JSON: {"deviceID"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The device's ID, from zdc devices list.")
    var device: String

    func run() async throws {
      try await Devices.revoke(common.options, deviceID: device)
    }
  }
}
