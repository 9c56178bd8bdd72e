import Testing
import ZeroDarkCloudTesting

/// A server that lies, row by row of SECURITY.md. => A typed error, and nothing is lost.
@Suite(HostileStageTrait()) struct HostileServerTests {
  @Test(arguments: HostileScenario.log) func log(_ scenario: HostileScenario) async throws {
    try await scenario.perform()
  }

  @Test(arguments: HostileScenario.tree) func tree(_ scenario: HostileScenario) async throws {
    try await scenario.perform()
  }

  @Test(arguments: HostileScenario.content) func content(_ scenario: HostileScenario) async throws {
    try await scenario.perform()
  }

  @Test(arguments: HostileScenario.identity) func identity(_ scenario: HostileScenario) async throws {
    try await scenario.perform()
  }

  @Test(arguments: HostileScenario.server) func server(_ scenario: HostileScenario) async throws {
    try await scenario.perform()
  }
}
