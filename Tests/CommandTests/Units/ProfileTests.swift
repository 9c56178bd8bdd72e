import Foundation
import Testing

@testable import ZDCCommands

@Suite("Profiles")
struct ProfileTests {
  @Test func pathsFollowTheXDGVariables_andRelativeOnesDoNotCount() throws {
    let home = ["HOME": "/home/u"]
    let standard = try ProfilePaths("work", environment: home)
    #expect(standard.configFile == "/home/u/.config/zdc/profiles/work.json")
    #expect(standard.dataFolder == "/home/u/.local/share/zdc/profiles/work")
    let moved = try ProfilePaths("work", environment: ["XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"])
    #expect(moved.configFile == "/c/zdc/profiles/work.json")
    #expect(moved.dataFolder == "/d/zdc/profiles/work")
    let relative = try ProfilePaths(
      "work", environment: ["HOME": "/home/u", "XDG_CONFIG_HOME": "c", "XDG_DATA_HOME": ""])
    #expect(relative == standard)
    #expect(throws: CommandError.self) { try ProfilePaths("work", environment: [:]) }
  }

  @Test(arguments: ["", ".", "..", ".hidden", "a/b", "../x", "a b", "ä", "a\u{0}", String(repeating: "a", count: 65)])
  func aNameThatCouldLeaveTheFolder_isRefused(_ name: String) {
    #expect(throws: CommandError.self) { try ProfilePaths(name, environment: ["HOME": "/h"]) }
  }

  /// A second close would hit whatever file or connection has the number by then.
  @Test func aSpoolThatAnotherProcessUses_isClosedOnce() throws {
    let home = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: home) }
    let paths = try ProfilePaths("work", environment: ["HOME": home])
    let shared = try SpoolLock(sharing: paths)
    withExtendedLifetime(shared) {
      errno = 0
      let second = SpoolLock(alone: paths)
      let code = errno
      #expect(second == nil)
      #expect(code != EBADF)
    }
  }

  @Test func theNameOfAPath() {
    #expect(AbsolutePath.name(of: "a/b/c.txt") == "c.txt")
    #expect(AbsolutePath.name(of: "a/b/") == "b")
    #expect(AbsolutePath.name(of: "a/.") == "")
    #expect(AbsolutePath.name(of: "..") == "")
    #expect(AbsolutePath.name(of: "/") == "")
    #expect(AbsolutePath.folder(of: "a/b") == "a")
    #expect(AbsolutePath.folder(of: "/b") == "/")
    #expect(AbsolutePath.folder(of: "b") == ".")
    #expect(AbsolutePath.folder(of: "a/b/") == "a")
  }
}
