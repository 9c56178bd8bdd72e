import Synchronization
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerMemory

@testable import ZDCServerS3

/// Several uploads of one blob, as two processes may begin them: the object store has no way to exclude that.
@Suite struct S3UploadTests {
  private static let length: UInt64 = 9 << 20
  private static let parts = ContentGeometry.partCount(cipherLength: length)
  private static let leaves = ContentGeometry.leafCount(cipherLength: length)

  /// An object store that has one blob of two parts, whose leaf hashes are all the same text.
  private final class FakeStore: Sendable {
    private struct State {
      /// The numbers of the parts of each upload that has not ended.
      var uploads: [String: [Int]]
      var isJoined: Bool
      var aborted: [String] = []
      var started = 0
    }

    let blob = BlobID.random()
    private let leafUploads: [String]
    /// Whether another request joins the parts as soon as this one reads their hashes.
    private let isOutrun: Bool
    private let state: Mutex<State>

    init(
      uploads: [String: [Int]] = [:], isJoined: Bool = false, leafUploads: [String] = [], isOutrun: Bool = false
    ) {
      state = Mutex(State(uploads: uploads, isJoined: isJoined))
      (self.leafUploads, self.isOutrun) = (leafUploads, isOutrun)
    }

    var aborted: [String] { state.withLock { $0.aborted } }
    var started: Int { state.withLock { $0.started } }

    func with(_ body: (S3BlobStore) async throws -> Void) async throws {
      try await ScriptedStore.with(respond: { self.answer($0) }) { scripted in
        let client = S3Client(
          address: try S3Address("s3+http://blobs@127.0.0.1:\(scripted.port)"),
          credentials: S3Credentials(keyID: "id", secret: "secret"), region: "r")
        try await body(S3BlobStore(client: client))
      }
    }

    private func answer(_ request: String) -> ScriptedStore.Step {
      let words = request.prefix { $0 != "\r\n" }.split(separator: " ")
      let (method, target) = (String(words[0]), String(words[1]))
      return state.withLock { state in
        if let id = target.split(separator: "uploadId=").dropFirst().first.map(String.init) {
          return Self.answer(method, upload: id, &state)
        }
        if method == "POST", target.hasSuffix("?uploads=") { return Self.start(&state) }
        if target.contains("uploads=") { return .answer(200, list(target, state)) }
        if method == "HEAD" { return state.isJoined ? .head(length) : .answer(404, "") }
        if isOutrun, method == "GET", target.hasPrefix("/blobs/p/") {
          (state.uploads, state.isJoined) = ([:], true)
          return .answer(404, "<Error><Code>NoSuchKey</Code></Error>")
        }
        if target.contains("list-type=") { return .answer(200, "<ListBucketResult></ListBucketResult>") }
        return .answer(200, Self.hashes(target, request))
      }
    }

    private static func answer(_ method: String, upload id: String, _ state: inout State) -> ScriptedStore.Step {
      guard let numbers = state.uploads[id] else { return .answer(404, "<Error><Code>NoSuchUpload</Code></Error>") }
      switch method {
      case "GET":
        let items = numbers.map { number in
          let size = ContentGeometry.partRange(number - 1, cipherLength: length).count
          return "<Part><PartNumber>\(number)</PartNumber><Size>\(size)</Size><ETag>x</ETag></Part>"
        }
        return .answer(200, "<ListPartsResult>\(items.joined())</ListPartsResult>")
      case "DELETE": state.aborted.append(id)
      default: state.isJoined = true
      }
      state.uploads[id] = nil
      return .answer(200, "<Done></Done>")
    }

    private static func start(_ state: inout State) -> ScriptedStore.Step {
      state.started += 1
      state.uploads["new"] = []
      return .answer(200, "<InitiateMultipartUploadResult><UploadId>new</UploadId></InitiateMultipartUploadResult>")
    }

    /// All uploads have begun in the same second.
    private func list(_ target: String, _ state: State) -> String {
      let (folder, ids) = target.contains("prefix=l%2F") ? ("l", leafUploads) : ("c", state.uploads.keys.sorted())
      let items = ids.map { id in
        """
        <Upload><Key>\(folder)/\(blob.text)</Key><UploadId>\(id)</UploadId><Initiated>2026-01-01T00:00:00Z</Initiated></Upload>
        """
      }
      return "<ListMultipartUploadsResult>\(items.joined())</ListMultipartUploadsResult>"
    }

    /// The leaf hashes of a part, or a range of all.
    private static func hashes(_ target: String, _ request: String) -> String {
      if target.hasPrefix("/blobs/p/"), let index = target.split(separator: "/").last.flatMap({ Int($0) }) {
        let perPart = ContentGeometry.leavesPerPart(cipherLength: length)
        let count = min(perPart, leaves - UInt64(index) * perPart)
        return String(repeating: "h", count: Int(count) * 32)
      }
      let bounds = request.lowercased().split(separator: "bytes=").dropFirst().first?
        .prefix { $0.isNumber || $0 == "-" }.split(separator: "-").compactMap { Int($0) }
      return String(repeating: "h", count: bounds.map { $0[1] - $0[0] + 1 } ?? 0)
    }
  }

  private static var root: ContentRoot {
    get throws {
      var builder = MerkleTree.Builder()
      let hash = try #require(MerkleHash([UInt8](repeating: UInt8(ascii: "h"), count: 32)))
      for _ in 0..<leaves { builder.append(leafHash: hash) }
      return ContentRoot(reinterpreting: builder.root)
    }
  }

  /// - Of two uploads that began in the same second, the one that sorts first has one part, and the other one all
  /// => the whole one is joined, and the other one ended
  @Test func theWholeUploadIsJoined() async throws {
    let fake = FakeStore(uploads: ["a": [1], "b": Array(1...Self.parts)])
    try await fake.with { (store: S3BlobStore) async throws in
      #expect(try await store.contentRoot(fake.blob, cipherLength: Self.length) == Self.root)
      #expect(fake.aborted == ["a"])
    }
  }

  /// - The parts were joined, and the database did not learn of it; another upload of the blob was left
  /// => the repeated completion finds the content, and ends the other upload
  @Test func anUploadThatIsLeft_doesNotHideTheContent() async throws {
    let fake = FakeStore(uploads: ["a": []], isJoined: true)
    try await fake.with { (store: S3BlobStore) async throws in
      #expect(try await store.contentRoot(fake.blob, cipherLength: Self.length) == Self.root)
      #expect(fake.aborted == ["a"])
    }
  }

  /// - A client repeats a completion whose answer takes long; the first one ends while the second one reads the hashes
  /// => both find the content: "lost" would make the client send it again
  @Test func aCompletionThatIsOutrun_findsTheContent() async throws {
    let fake = FakeStore(uploads: ["a": Array(1...Self.parts)], isOutrun: true)
    try await fake.with { (store: S3BlobStore) async throws in
      #expect(try await store.contentRoot(fake.blob, cipherLength: Self.length) == Self.root)
    }
  }

  @Test func partsThatAreSpreadAreLost() async throws {
    let fake = FakeStore(uploads: ["a": [1], "b": [2]])
    try await fake.with { (store: S3BlobStore) async throws in
      await #expect(throws: BlobLost.self) { try await store.contentRoot(fake.blob, cipherLength: Self.length) }
    }
  }

  /// - A process was stopped while it wrote the hashes of content that nothing names any more
  /// => what it has left is found
  @Test func anUploadOfHashesIsFound() async throws {
    let fake = FakeStore(leafUploads: ["h"])
    try await fake.with { (store: S3BlobStore) async throws in
      #expect(try await store.all() == [fake.blob])
    }
  }

  /// => the ticket begins the upload, and no later request another one
  @Test func aTicketBeginsTheUpload() async throws {
    let fake = FakeStore()
    try await fake.with { (store: S3BlobStore) async throws in
      try await store.begin(fake.blob, cipherLength: Self.length)
      try await store.begin(fake.blob, cipherLength: Self.length)
      #expect(fake.started == 1)
      try await store.begin(.random(), cipherLength: 100_000)
      #expect(fake.started == 1, "content of one part is one object")
    }
  }
}
