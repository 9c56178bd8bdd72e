internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import ZDCSupport

/// The default transport: HTTP/1.1 with persistent connections and streamed bodies in both directions.
///
/// HTTP/2 is disabled on purpose: for bulk transfers it is several times slower, and it buffers without bound.
/// Redirects are not followed, so a token is sent only to the configured server.
package final class AsyncHTTPTransport: Transport {
  private let pool: Locked<ConnectionPool>
  private let configuration: HTTPClient.Configuration
  private let origin: String

  /// Creates a transport for a server.
  ///
  /// - Parameters:
  ///   - serverURL: `https://host[:port]`; `http` only for this machine.
  ///   - caCertificates: Certificate authorities in PEM form to trust instead of the system's; nil for the system's.
  /// - Throws: ``ZDCTransportError`` with `invalidAddress`, `insecureAddress`, or `tls` for unreadable certificates.
  package convenience init(serverURL: String, caCertificates: [UInt8]? = nil) throws {
    try self.init(address: ServerAddress(serverURL), caCertificates: caCertificates)
  }

  /// Time limits after which a connection is closed. Tests use shorter ones.
  package struct Bounds: Sendable {
    /// Maximum time to establish a connection, including TLS.
    package var connect = Duration.seconds(20)
    /// Maximum time without a byte of an answer, once the request is sent.
    package var silence = Duration.seconds(60)
    /// See ``SendingPace``.
    package var sendingWindow = TransferPace.window

    package init() {}
  }

  package init(address: ServerAddress, caCertificates: [UInt8]?, bounds: Bounds = Bounds()) throws {
    origin = address.origin
    let configuration = try Self.configuration(
      caCertificates: caCertificates, origin: address.origin, bounds: bounds)
    self.configuration = configuration
    pool = Locked(ConnectionPool(configuration))
  }

  /// Replaces the pool of connections. Requests in progress keep the old pool until they end.
  package func renewConnections() async {
    let fresh = ConnectionPool(configuration)
    pool.withLock { $0 = fresh }
  }

  private static func configuration(
    caCertificates: [UInt8]?, origin: String, bounds: Bounds
  ) throws -> HTTPClient.Configuration {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    if let caCertificates {
      guard let authorities = try? NIOSSLCertificate.fromPEMBytes(caCertificates), !authorities.isEmpty else {
        throw TransportError(.tls, origin: origin)
      }
      tls.trustRoots = .certificates(authorities)
    }
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: tls, redirectConfiguration: .disallow,
      timeout: .init(connect: .init(bounds.connect), read: .init(bounds.silence), write: .init(bounds.silence)),
      connectionPool: .init(idleTimeout: .seconds(30), concurrentHTTP1ConnectionsPerHostSoftLimit: 8),
      decompression: .disabled)
    configuration.httpVersion = .http1Only
    // The only hook for adding handlers to the client's connections. The client calls it for each one.
    let window = TimeAmount(bounds.sendingWindow)
    configuration.http1_1ConnectionDebugInitializer = { Self.prepare($0, sendingWindow: window) }
    // The engines know when to retry, so they must hear of a refused connection immediately.
    configuration.connectionPool.retryConnectionEstablishment = false
    return configuration
  }

  /// The size of a read grows while bytes arrive quickly. With NIO's maximum of 64 KiB, a large download from the same
  /// machine took about a fifth longer.
  private static let readBuffers = AdaptiveRecvByteBufferAllocator(
    minimum: 1 << 10, initial: 16 << 10, maximum: 512 << 10)

  private static func prepare(_ channel: any Channel, sendingWindow: TimeAmount) -> EventLoopFuture<Void> {
    do {
      try channel.syncOptions?.setOption(.recvAllocator, value: readBuffers)
      try AnswerGuard.add(to: channel)
      try SendingGuard.add(to: channel, window: sendingWindow)
    } catch {
      // A connection without its guards must not be used. The client reports it as closed.
      channel.close(promise: nil)
    }
    return channel.eventLoop.makeSucceededVoidFuture()
  }

  /// Sends a request. A GET whose connection is cut before an answer is sent once more on a new connection.
  ///
  /// - Throws: ``ZDCTransportError``, or `CancellationError` if the task is cancelled.
  package func send(_ request: TransportRequest) async throws -> TransportResponse {
    do { return try await sendOnce(request) } catch let error as TransportError
      where error.code == .cut && request.method == .get
    {
      // The server may have just closed a persistent connection. A GET is safe to repeat.
      return try await sendOnce(request)
    }
  }

  private func sendOnce(_ request: TransportRequest) async throws -> TransportResponse {
    let pool = pool.withLock { $0 }
    do {
      let response = try await pool.client.execute(translate(request), timeout: .init(request.timeout))
      return TransportResponse(
        status: Int(response.status.code), headers: Self.headers(response.headers), body: body(of: response, pool))
    } catch { throw TransportError.translate(error, origin: origin) }
  }

  private func translate(_ request: TransportRequest) -> HTTPClientRequest {
    var translated = HTTPClientRequest(url: origin + request.path)
    translated.method = HTTPMethod(rawValue: request.method.rawValue)
    for (name, value) in request.headers { translated.headers.add(name: name, value: value) }
    switch request.body {
    case .none: break
    case .bytes(let bytes) where bytes.count <= SliceSequence.sliceBytes:
      translated.body = .bytes(ByteBuffer(bytes: bytes))
    case .bytes(let bytes):
      let slices = SliceSequence(bytes: bytes, taken: request.bodyTaken)
      translated.body = .stream(slices, length: .known(Int64(bytes.count)))
    case .stream(let length, let body):
      translated.body = .stream(BufferSequence(body: body), length: .known(Int64(clamping: length)))
    }
    return translated
  }

  private static func headers(_ headers: HTTPHeaders) -> [String: String] {
    Dictionary(headers.map { ($0.name.lowercased(), $0.value) }, uniquingKeysWith: { $1 })
  }

  /// The body keeps its pool alive until it is read.
  private func body(of response: HTTPClientResponse, _ pool: ConnectionPool) -> TransportBody {
    let reader = BodyReader(response.body, origin: origin)
    return TransportBody { [pool] in
      defer { withExtendedLifetime(pool) {} }
      return try await reader.next()
    }
  }
}

/// Persistent connections, which are closed when the last request that uses them has ended.
private final class ConnectionPool: Sendable {
  let client: HTTPClient

  init(_ configuration: HTTPClient.Configuration) {
    // The same event loops on every platform, so that certificates and errors behave alike everywhere.
    client = HTTPClient(
      eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton), configuration: configuration)
  }

  deinit {
    // The closure holds the client until its connections are closed.
    client.shutdown { [client] _ in _ = client }
  }
}

/// Reads a response's body slice by slice. It is an actor because the iterator is not Sendable but the body is.
private actor BodyReader {
  /// Nil while a read is waiting for a slice. A second concurrent read is a programmer error and throws.
  private var iterator: HTTPClientResponse.Body.AsyncIterator?
  private let origin: String

  init(_ body: HTTPClientResponse.Body, origin: String) {
    iterator = body.makeAsyncIterator()
    self.origin = origin
  }

  func next() async throws -> [UInt8]? {
    guard var current = iterator else { throw TransportError(.cut, origin: origin) }
    iterator = nil
    defer { iterator = current }
    do {
      return try await current.next(isolation: self).map { [UInt8]($0.readableBytesView) }
    } catch { throw TransportError.translate(error, origin: origin) }
  }
}

/// Bytes in slices, so that an upload part is not held in memory twice while it is sent.
private struct SliceSequence: AsyncSequence, Sendable {
  typealias Element = ByteBuffer
  static let sliceBytes = 128 << 10
  let bytes: [UInt8]
  let taken: @Sendable () -> Void

  struct AsyncIterator: AsyncIteratorProtocol {
    var rest: ArraySlice<UInt8>
    let taken: @Sendable () -> Void

    mutating func next() async throws -> ByteBuffer? {
      let slice = rest.prefix(SliceSequence.sliceBytes)
      rest = rest.dropFirst(slice.count)
      guard !slice.isEmpty else {
        taken()
        return nil
      }
      return ByteBuffer(bytes: slice)
    }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rest: bytes[...], taken: taken) }
}

private struct BufferSequence: AsyncSequence, Sendable {
  typealias Element = ByteBuffer
  let body: TransportBody

  struct AsyncIterator: AsyncIteratorProtocol {
    let body: TransportBody

    mutating func next() async throws -> ByteBuffer? {
      try await body.next().map { ByteBuffer(bytes: $0) }
    }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: body) }
}
