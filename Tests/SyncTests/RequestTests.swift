import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The requests to the server, counted.
struct RequestTests {
  @Test func thousandNodes_goUpInFewRequests() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.write { transaction, cloud in
        for number in 0..<1_000 {
          try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(number)"]))
        }
      }
      try await a.pull()
      a.network.resetCounts()
      try await a.push()
      #expect(a.network.counts() == "POST /v1/commits × 1")
      #expect(try await a.queueCount() == 0)
      try await b.pull()
      b.network.resetCounts()
      try await b.pull()
      #expect(b.network.counts() == "GET /v1/zones × 1")
      #expect(try world.server.nodeCount() == 1_000)
    }
  }

  @Test func firstPull_asksOncePerPage_neverPerNode() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.write { transaction, cloud in
        for number in 0..<200 { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(number)"])) }
      }
      try await a.sync()
      let b = try await world.device("B")
      b.network.resetCounts()
      try await b.pull()
      // The heads of all trunks and of the identity chain; for each trunk a page of commits and a batch of records.
      #expect(b.network.count("GET", "/v1/zones") == 1)
      #expect(b.network.count("GET", "/v1/trees/{treeID}/zones/{zoneRoot}/commits") == 4)
      #expect(b.network.count("POST", "/v1/trees/{treeID}/zones/{zoneRoot}/records") == 4)
      #expect(b.network.requests.count == 9)
    }
  }

  @Test func noContent_isFetchedUnasked() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/small", "1")
      try await a.create("/large", TestContent(data: EndToEndTests.bytes(100_000, seed: 1)))
      try await a.sync()
      try await b.sync()
      for device in [a, b] {
        #expect(device.network.count("POST", "/v1/trees/{treeID}/zones/{zoneRoot}/contents") == 0)
        #expect(device.network.count("GET", "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}") == 0)
      }
    }
  }

  @Test func smallContents_comeInOneRequest_aLargeOneInOne() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for number in 0..<50 { try await a.create("/\(number)", "text \(number)") }
      try await a.create("/large", TestContent(data: EndToEndTests.bytes(1 << 20, seed: 1)))
      try await a.sync()
      try await b.pull()
      b.network.resetCounts()
      #expect(try await b.download() == 51)
      #expect(b.network.count("POST", "/v1/trees/{treeID}/zones/{zoneRoot}/contents") == 1)
      #expect(b.network.count("GET", "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}") == 1)
      #expect(b.network.requests.count == 2)
    }
  }

  /// The requests of a command that runs while no other does: open, pull, push, close.
  @Test("an edit after a launch costs two round trips, and nothing new costs one")
  func nextLaunch() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.sync()
      for number in 0..<3 {
        try await a.relaunch()
        a.network.resetCounts()
        try await a.create("/\(number)", "1")
        try await a.sync()
        #expect(a.network.counts() == "GET /v1/zones × 1\nPOST /v1/commits × 1")
        try await a.relaunch()
        a.network.resetCounts()
        try await a.sync()
        #expect(a.network.counts() == "GET /v1/zones × 1")
      }
    }
  }

  @Test func nothingToPush_asksNothing() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      try await a.sync()
      a.network.resetCounts()
      try await a.push()
      #expect(a.network.counts() == "")
    }
  }

  @Test func edit_isOneRequest() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      try await a.sync()
      try await a.edit("/f", "2")
      a.network.resetCounts()
      try await a.push()
      #expect(a.network.counts() == "POST /v1/commits × 1")
    }
  }
}
