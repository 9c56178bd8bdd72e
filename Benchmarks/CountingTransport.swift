import Foundation
import Synchronization
import ZeroDarkCloud

/// The usual transport, which also counts the requests of one device and the body bytes in both directions. It can cut
/// event streams.
final class CountingTransport: Transport {
  struct Counts: Sendable {
    var requests: [String] = []
    var bytes = 0
  }

  private struct State {
    var counts = Counts()
    var streams: [AsyncThrowingStream<[UInt8], any Error>.Continuation] = []
  }

  private let http: AsyncHTTPTransport
  private let state = Mutex(State())

  init(server: URL) throws {
    http = try AsyncHTTPTransport(serverURL: server.absoluteString)
  }

  /// Returns the counts since the last call.
  func take() -> Counts {
    state.withLock { state in
      defer { state.counts = Counts() }
      return state.counts
    }
  }

  /// Ends every event stream as if the network had failed.
  func cut() {
    let streams = state.withLock { state in
      defer { state.streams = [] }
      return state.streams
    }
    for stream in streams { stream.finish(throwing: TransportError(.cut)) }
  }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    let sent: Int
    switch request.body {
    case .none: sent = 0
    case .bytes(let bytes): sent = bytes.count
    case .stream(let length, _): sent = Int(length)
    }
    let path = request.path.prefix { $0 != "?" }
    state.withLock { state in
      state.counts.requests.append("\(request.method.rawValue) \(path)")
      state.counts.bytes += sent
    }
    var response = try await http.send(request)
    let body = counted(response.body)
    let isStream = response.headers["content-type"]?.hasPrefix("text/event-stream") ?? false
    response.body = isStream ? breakable(body) : body
    return response
  }

  private func counted(_ body: TransportBody) -> TransportBody {
    TransportBody { [weak self] in
      let slice = try await body.next()
      self?.state.withLock { $0.counts.bytes += slice?.count ?? 0 }
      return slice
    }
  }

  private func breakable(_ body: TransportBody) -> TransportBody {
    let (stream, continuation) = AsyncThrowingStream<[UInt8], any Error>.makeStream()
    let pump = Task {
      do {
        while let slice = try await body.next() { continuation.yield(slice) }
        continuation.finish()
      } catch { continuation.finish(throwing: error) }
    }
    continuation.onTermination = { _ in pump.cancel() }
    state.withLock { $0.streams.append(continuation) }
    let reader = StreamReader(stream)
    return TransportBody { try await reader.next() }
  }
}

private actor StreamReader {
  private let stream: AsyncThrowingStream<[UInt8], any Error>

  init(_ stream: AsyncThrowingStream<[UInt8], any Error>) {
    self.stream = stream
  }

  func next() async throws -> [UInt8]? {
    for try await slice in stream { return slice }
    return nil
  }
}
