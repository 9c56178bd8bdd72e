import AsyncHTTPClient
import Foundation
import GRDB
import NIOCore
import NIOHTTP1
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// One event of a stream.
struct ServerEvent {
  var id = ""
  var name = ""
  var data = ""

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    try JSONDecoder().decode(type, from: Data(data.utf8))
  }
}

extension TestServer {
  static func remove(_ folder: String) {
    TestStores.forget(folder)
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// Every byte of every file in the server's folder.
  static func allBytes(in folder: String) throws -> Data {
    var all = Data()
    for path in try FileManager.default.subpathsOfDirectory(atPath: folder) {
      all.append(FileManager.default.contents(atPath: folder + "/" + path) ?? Data())
    }
    return all
  }
}

extension ServerClient {
  /// Sends a body that comes piece by piece; returns the answer's status.
  func upload(_ path: String, token: [UInt8], body: AsyncStream<[UInt8]>, length: Int) async throws -> Int {
    var request = HTTPClientRequest(url: origin + path)
    request.method = .POST
    request.headers.add(name: "authorization", value: "Bearer \(ZBase32.encode(token))")
    request.body = .stream(body.map { ByteBuffer(bytes: $0) }, length: .known(Int64(length)))
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
    return Int(response.status.code)
  }

  /// Opens the event stream and returns when its first bytes may come.
  func events(since: FeedPosition? = nil, token: [UInt8]) async throws -> EventSequence {
    var request = HTTPClientRequest(url: origin + Routes.events + (since.map { "?since=\($0.text)" } ?? ""))
    request.headers.add(name: "authorization", value: "Bearer \(ZBase32.encode(token))")
    let response = try await http.execute(request, timeout: .seconds(30))
    guard response.status.code == 200 else { throw Unexpected(status: Int(response.status.code), text: "events") }
    return EventSequence(body: response.body)
  }
}

/// Server-Sent Events out of a response's body; comments are left out.
final class EventSequence: AsyncSequence, @unchecked Sendable {
  // Used by one task at a time: the tests hand it on, they do not share it.
  private var body: HTTPClientResponse.Body.AsyncIterator
  private var text = ""

  init(body: HTTPClientResponse.Body) {
    self.body = body.makeAsyncIterator()
  }

  func makeAsyncIterator() -> Iterator { Iterator(source: self) }

  struct Iterator: AsyncIteratorProtocol {
    let source: EventSequence
    mutating func next() async throws -> ServerEvent? { try await source.nextEvent() }
  }

  private func nextEvent() async throws -> ServerEvent? {
    while true {
      if let end = text.range(of: "\n\n") {
        let block = text[..<end.lowerBound]
        text = String(text[end.upperBound...])
        if !block.hasPrefix(":") { return parse(block) }
        continue
      }
      guard let buffer = try await body.next() else { return nil }
      text += String(buffer: buffer)
    }
  }

  private func parse(_ block: Substring) -> ServerEvent {
    var event = ServerEvent()
    for line in block.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 1).map { $0.drop { $0 == " " } }
      switch parts.first {
      case "id": event.id = String(parts[1])
      case "event": event.name = String(parts[1])
      case "data": event.data = String(parts[1])
      default: break
      }
    }
    return event
  }
}

extension TestServer {
  /// The body of a request for records.
  static func recordNames(_ names: [(node: NodeID, hash: RecordHash)]) -> [UInt8] {
    names.flatMap { $0.node.bytes + $0.hash.bytes }
  }

  static func bytes(of path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  static func write(_ bytes: [UInt8], to path: String) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }

  static func files(in folder: String) throws -> [String: Data] {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: folder)
    return Dictionary(
      paths.map { ($0, FileManager.default.contents(atPath: folder + "/" + $0) ?? Data()) },
      uniquingKeysWith: { first, _ in first })
  }

  static func sql(_ statement: String, in folder: String) throws {
    let queue = try DatabaseQueue(path: folder + "/zdc.sqlite")
    try queue.writeWithoutTransaction { db in try db.execute(sql: statement) }
    try queue.close()
  }

  /// Whether some file of the folder holds these bytes.
  static func folder(_ folder: String, holds needle: [UInt8]) throws -> Bool {
    try allBytes(in: folder).range(of: Data(needle)) != nil
  }
}
