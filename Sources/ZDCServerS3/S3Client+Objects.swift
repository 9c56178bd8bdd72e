internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1

// Single objects and lists of them.
extension S3Client {
  func put(_ key: String, _ body: ByteBuffer) async throws {
    _ = try await collect(S3Request(operation: "put", method: .PUT, key: key, body: body), upTo: Self.answer)
  }

  /// Returns the bytes of an object, or of a range of it.
  ///
  /// - Throws: ``S3Failure`` with `isMissing`, also if the object is shorter than the range.
  func get(_ key: String, range: Range<UInt64>? = nil, upTo limit: Int) async throws -> [UInt8] {
    if let range, range.isEmpty { return [] }
    let bytes = try await collect(Self.get(key, range), upTo: limit)
    if let range, bytes.count != range.count { throw Self.missing }
    return bytes
  }

  /// Returns the answer whose body is the range, as soon as its head has arrived.
  ///
  /// - Throws: ``S3Failure`` with `isMissing`, also if the object is shorter than the range.
  func stream(_ key: String, range: Range<UInt64>) async throws -> HTTPClientResponse {
    let response = try await send(Self.get(key, range))
    guard response.headers.first(name: "content-length").flatMap(Int.init) == range.count else { throw Self.missing }
    return response
  }

  private static func get(_ key: String, _ range: Range<UInt64>?) -> S3Request {
    let headers = range.map { [(name: "range", value: "bytes=\($0.lowerBound)-\($0.upperBound - 1)")] } ?? []
    return S3Request(operation: "get", method: .GET, key: key, headers: headers)
  }

  /// Returns the length of an object, or nil if it does not exist.
  func length(_ key: String) async throws -> UInt64? {
    do {
      let response = try await send(S3Request(operation: "head", method: .HEAD, key: key))
      return response.headers.first(name: "content-length").flatMap(UInt64.init)
    } catch let failure as S3Failure where failure.isMissing { return nil }
  }

  /// Deletes up to 1,000 objects. Objects that do not exist are no error.
  func delete(_ keys: [String]) async throws {
    guard !keys.isEmpty else { return }
    let items = keys.map { "<Object><Key>\($0)</Key></Object>" }.joined()
    let body = ByteBuffer(string: "<Delete><Quiet>true</Quiet>\(items)</Delete>")
    let request = S3Request(
      operation: "delete", method: .POST, query: [("delete", "")],
      headers: [("content-md5", SignatureV4.md5(of: body)), ("content-type", "application/xml")], body: body)
    let answer = try await answer(request)
    guard let refused = answer.all("Error").first else { return }
    throw S3Failure(status: 200, code: refused["Code"] ?? "", operation: "delete")
  }

  /// Returns up to 1,000 keys and what to pass for the next ones, which is nil at the end.
  func list(_ prefix: String, after token: String? = nil, limit: Int = 1_000) async throws -> ([String], String?) {
    var query = [("list-type", "2"), ("prefix", prefix), ("max-keys", "\(limit)")]
    if let token { query.append(("continuation-token", token)) }
    let answer = try await answer(S3Request(operation: "list", method: .GET, query: query))
    let isMore = answer["IsTruncated"] == "true"
    return (answer.all("Contents").compactMap { $0["Key"] }, isMore ? answer["NextContinuationToken"] : nil)
  }

  /// Sends a request and parses its answer, which may be an error in spite of its status.
  func answer(_ request: S3Request) async throws -> XMLNode {
    try Self.parsed(try await collect(request, upTo: Self.answer), request.operation)
  }

  static func parsed(_ bytes: [UInt8], _ operation: String) throws -> XMLNode {
    // Some stores answer a deletion of many objects, all of them deleted, with nothing.
    if bytes.isEmpty { return try XMLNode(Array("<Empty/>".utf8)) }
    guard let node = try? XMLNode(bytes) else {
      throw S3Failure(status: 200, code: "malformed answer", operation: operation)
    }
    guard node.name != "Error" else { throw S3Failure(status: 200, code: node["Code"] ?? "", operation: operation) }
    return node
  }

  /// Longer than a list of 1,000 objects.
  private static let answer = 4 << 20
  private static let missing = S3Failure(status: 404, code: "NoSuchKey", operation: "get")
}
