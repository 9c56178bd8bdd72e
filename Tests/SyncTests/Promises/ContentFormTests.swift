import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Content that an app supplies in any form arrives on another device as the same bytes.
@Suite struct ContentFormTests {
  enum Form: CaseIterable { case memory, cleartextFile, cryptoFile, promise, chainedPromise, closure, provider }

  @Test(arguments: Form.allCases, [0, 2_000, 200_000])
  func everyForm_ofAnySize_arrives(form: Form, size: Int) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let bytes = EndToEndTests.bytes(size, seed: 9)
      let folder = try TemporaryFolder()
      let data = try await Self.data(bytes, form, a, folder)
      let node = try await a.create("/f")
      a.recorder.serve(data, forNodeID: node.uuid)
      try await a.sync()
      try await b.pull()
      try await b.download()
      #expect(try await b.content(of: "/f")?.data == bytes)
      if form == .cleartextFile {
        #expect(try Data(contentsOf: folder.url.appendingPathComponent("source")) == bytes)
      }
    }
  }

  private static func data(
    _ bytes: Data, _ form: Form, _ device: TestDevice, _ folder: TemporaryFolder
  ) async throws -> ZDCData {
    switch form {
    case .memory: return ZDCData(data: bytes)
    case .cleartextFile:
      let url = folder.url.appendingPathComponent("source")
      try bytes.write(to: url)
      return ZDCData(cleartextFileURL: url)
    case .cryptoFile: return ZDCData(cryptoFile: try await cryptoFile(bytes, device))
    case .promise:
      let promise = ZDCDataPromise()
      promise.fulfill(ZDCData(data: bytes))
      return ZDCData(promise: promise)
    case .chainedPromise:
      let (first, last) = (ZDCDataPromise(), ZDCDataPromise())
      first.fulfill(ZDCData(promise: last))
      last.fulfill(ZDCData(data: bytes))
      return ZDCData(promise: first)
    case .closure: return ZDCData(promise: ZDCDataPromise { promise in promise.fulfill(ZDCData(data: bytes)) })
    case .provider: return ZDCData { () async throws -> Data in bytes }
    }
  }

  /// Returns content that is sealed under another node's key, by downloading it from that node.
  private static func cryptoFile(_ bytes: Data, _ device: TestDevice) async throws -> ZDCCryptoFile {
    let other = try await device.create("/other")
    device.recorder.serve(ZDCData(data: bytes), forNodeID: other.uuid)
    try await device.sync()
    let manager = try #require(try device.zdc.downloadManager)
    return try await manager.downloadNodeData(other).cryptoFile
  }

  // MARK: Sections

  /// => 16 MiB of each are accepted; with one byte more the content waits for the app, without a security error, and
  /// other nodes continue
  @Test func sections_mayHave16MiB_andNoMore() async throws {
    let limit = 16 << 20
    try await TestWorld.run { world in
      let app = ScriptedDelegate { path in
        var parts = Parts(data: ZDCData(data: Data("data".utf8)))
        switch path {
        case "/full":
          parts.metadata = ZDCData(data: Data(repeating: 1, count: limit))
          parts.thumbnail = ZDCData(data: Data(repeating: 2, count: limit))
        case "/metadata": parts.metadata = ZDCData(data: Data(count: limit + 1))
        case "/thumbnail": parts.thumbnail = ZDCData(data: Data(count: limit + 1))
        default: break
        }
        return parts
      }
      try await world.device("A", delegate: app) { a in
        for path in ["/full", "/metadata", "/thumbnail", "/other"] { try await a.create(path) }
        try await a.sync()
        #expect(app.pushed.sorted() == ["/full", "/other"])
        #expect(try await a.queue() == "putData /metadata noDataFromApp\nputData /thumbnail noDataFromApp")
        #expect(try await a.securityErrors() == [])
        let manager = try #require(try a.zdc.downloadManager)
        let full = try await manager.downloadNodeMeta(try await a.node("/full"), components: .all)
        #expect(full.metadata == Data(repeating: 1, count: limit))
        #expect(full.thumbnail == Data(repeating: 2, count: limit))
      }
    }
  }
}
