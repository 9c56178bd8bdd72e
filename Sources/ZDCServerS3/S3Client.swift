internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A request to the object store. The key is empty for a request about the bucket.
struct S3Request: Sendable {
  /// The kind of request, for messages.
  var operation: String
  var method: HTTPMethod
  var key = ""
  var query: [(name: String, value: String)] = []
  var headers: [(name: String, value: String)] = []
  var body = ByteBuffer()
}

/// Sends signed requests to one bucket and repeats those that fail for a moment.
final class S3Client: Sendable {
  struct Bounds: Sendable {
    var connect = Duration.seconds(5)
    /// Maximum time without a byte of an answer.
    var silence = Duration.seconds(20)
    /// Maximum time of one attempt, until the answer's head.
    var attempt = Duration.seconds(30)
    /// Maximum time of a request with all its attempts. A client of this server waits for 60 seconds.
    var total = Duration.seconds(45)
    var connections = 64
  }

  let address: S3Address
  let bounds: Bounds
  private let signature: SignatureV4
  private let client: HTTPClient
  private let retries = RetryPolicy()
  private let now: @Sendable () -> Date

  init(
    address: S3Address, credentials: S3Credentials, region: String, bounds: Bounds = Bounds(),
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.address = address
    self.bounds = bounds
    self.now = now
    signature = SignatureV4(credentials: credentials, region: region)
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: tls, redirectConfiguration: .disallow,
      timeout: .init(connect: .init(bounds.connect), read: .init(bounds.silence), write: .init(bounds.silence)),
      connectionPool: .init(idleTimeout: .seconds(10), concurrentHTTP1ConnectionsPerHostSoftLimit: bounds.connections),
      decompression: .disabled)
    configuration.httpVersion = .http1Only
    configuration.connectionPool.retryConnectionEstablishment = false
    client = HTTPClient(
      eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton), configuration: configuration)
  }

  deinit {
    // The closure holds the client until its connections are closed.
    client.shutdown { [client] _ in _ = client }
  }

  /// Sends a request until it succeeds, fails for good, or its time is over. Returns once the answer's head has arrived.
  ///
  /// - Throws: ``S3Failure``, or `CancellationError`.
  func send(_ request: S3Request) async throws -> HTTPClientResponse {
    let hash = SignatureV4.hash(of: request.body)
    return try await retrying { try await self.sendOnce(request, hash) }
  }

  /// Sends a request and returns the answer's body. A body that breaks off counts as a failed attempt.
  func collect(_ request: S3Request, upTo limit: Int) async throws -> [UInt8] {
    let hash = SignatureV4.hash(of: request.body)
    return try await retrying {
      try await self.body(of: try await self.sendOnce(request, hash), upTo: limit, operation: request.operation)
    }
  }

  private func retrying<T>(_ attempt: () async throws -> sending T) async throws -> sending T {
    let start = ContinuousClock.now
    var attempts = 1
    while true {
      do {
        let value = try await attempt()
        retries.succeeded()
        return value
      } catch let failure as S3Failure {
        let remaining = UInt64(max(0, (bounds.total - (ContinuousClock.now - start)) / .milliseconds(1)))
        let pause = retries.pause(
          after: failure, attempt: attempts, remainingMs: remaining, random: .random(in: 0..<1))
        guard let pause else { throw failure }
        try await Task.sleep(for: .milliseconds(pause))
        attempts += 1
      }
    }
  }

  private func sendOnce(_ request: S3Request, _ bodyHash: String) async throws -> HTTPClientResponse {
    let response: HTTPClientResponse
    do {
      response = try await client.execute(signed(request, bodyHash), timeout: .init(bounds.attempt))
    } catch { throw try Self.failure(error, request.operation) }
    guard !(200..<300).contains(response.status.code) else { return response }
    let bytes = (try? await body(of: response, upTo: Self.longestError, operation: request.operation)) ?? []
    let code = (try? XMLNode(bytes))?["Code"] ?? ""
    throw S3Failure(status: Int(response.status.code), code: code, operation: request.operation)
  }

  private static let longestError = 64 << 10

  private func body(of response: HTTPClientResponse, upTo limit: Int, operation: String) async throws -> [UInt8] {
    do {
      return [UInt8](try await response.body.collect(upTo: limit).readableBytesView)
    } catch { throw try Self.failure(error, operation) }
  }

  /// Describes an attempt without an answer. Only the type of the error is kept: its text may have the request.
  static func failure(_ error: any Error, _ operation: String) throws -> S3Failure {
    if let failure = error as? S3Failure { return failure }
    if error is NIOTooManyBytesError {
      return S3Failure(status: 200, code: "the answer is too long", operation: operation)
    }
    if error is CancellationError || Task.isCancelled { throw CancellationError() }
    let code =
      switch error as? HTTPClientError {
      case .connectTimeout, .readTimeout, .writeTimeout, .deadlineExceeded, .getConnectionFromPoolTimeout:
        "no answer in time"
      default: error is NIOConnectionError ? "no connection" : "the connection broke (\(type(of: error)))"
      }
    return S3Failure(code: code, operation: operation)
  }

  private func signed(_ request: S3Request, _ hash: String) -> HTTPClientRequest {
    let date = now().formatted(Self.dateFormat)
    let path = "/\(address.bucket)" + (request.key.isEmpty ? "" : "/\(request.key)")
    var headers =
      request.headers + [
        ("host", address.authority), ("x-amz-content-sha256", hash), ("x-amz-date", date),
      ]
    if let token = signature.credentials.sessionToken { headers.append(("x-amz-security-token", token)) }
    let message = SignatureV4.Message(
      method: request.method.rawValue, path: path, query: request.query, headers: headers, bodyHash: hash)
    let query = request.query.isEmpty ? "" : "?" + SignatureV4.canonicalQuery(request.query)
    var signed = HTTPClientRequest(url: address.origin + SignatureV4.encoded(path, keepingSlashes: true) + query)
    signed.method = request.method
    for (name, value) in headers { signed.headers.add(name: name, value: value) }
    signed.headers.add(name: "authorization", value: signature.authorization(for: message, date: date))
    if [.PUT, .POST].contains(request.method) { signed.body = .bytes(request.body) }
    return signed
  }

  private static let dateFormat = Date.ISO8601FormatStyle(
    dateSeparator: .omitted, dateTimeSeparator: .standard, timeSeparator: .omitted)
}
