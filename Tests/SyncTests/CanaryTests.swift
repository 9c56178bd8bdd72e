import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Plants texts in names, metadata, thumbnails and data, small and large.
/// => They never appear in the server's files, in its log, or on the wire, nor in the clear in the device's own
/// database.
struct CanaryTests {
  private static let name = "canary-name-b81f02"
  private static let newName = "canary-renamed-5c7e11"
  private static let metadata = "canary-metadata-93a4d0"
  private static let thumbnail = "canary-thumbnail-0f62ce"
  private static let data = "canary-data-e7715b"
  private static let edited = "canary-edited-2a90d7"

  @Test func plantedTexts_neverReachTheServer() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      a.network.keepTraffic()
      b.network.keepTraffic()
      try await Self.plant(a)
      try await a.rename("/\(Self.name)", to: Self.newName)
      try await a.edit("/\(Self.newName)", Self.edited)
      try await world.settle(a, b)
      // The test is not vacuous: the texts did travel.
      let arrived = try #require(try await b.content(of: "/\(Self.newName)"))
      #expect(arrived.data == Data(Self.edited.utf8))
      #expect(arrived.metadata == Data(Self.metadata.utf8))
      try await world.server.restart()

      let scanner = CanaryScanner([
        Self.name, Self.newName, Self.metadata, Self.thumbnail, Self.data, Self.edited,
      ])
      #expect(try scanner.scan(folder: world.server.folder).map(\.description) == [])
      #expect(scanner.scan(world.server.log.text, place: "log").map(\.description) == [])
      for device in [a, b] {
        #expect(scanner.scan(device.log.text, place: "\(device.name)'s log").map(\.description) == [])
        let traffic = device.network.traffic.flatMap { $0 }
        #expect(traffic.count > 200_000)
        #expect(scanner.scan(traffic, place: "\(device.name)'s traffic").map(\.description) == [])
        #expect(try scanner.scan(folder: device.folder).map(\.description) == [])
      }
    }
  }

  private static func plant(_ device: TestDevice) async throws {
    try await device.create(
      "/\(name)",
      TestContent(data: Data(data.utf8), metadata: Data(metadata.utf8), thumbnail: Data(thumbnail.utf8)))
    let large = try await device.create("/\(name)/\(name)-large")
    let repeated = Data(String(repeating: data + "\n", count: 10_000).utf8)
    device.recorder.serve(ZDCData(data: repeated), forNodeID: large.uuid)
    try await device.sync()
    device.recorder.serve(nil, forNodeID: large.uuid)
  }
}
