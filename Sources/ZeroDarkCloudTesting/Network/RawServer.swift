internal import Foundation
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Answers HTTP requests with arbitrary bytes, valid or not, from a plain socket on 127.0.0.1.
///
/// ```swift
/// let raw = try RawServer { _ in Array("HTTP/1.1 000 X\r\n\r\n".utf8) }
/// let transport = try AsyncHTTPTransport(serverURL: raw.url)
/// raw.end()
/// ```
package final class RawServer: Sendable {
  private struct State {
    var open: Set<Int32> = []
    var requests: [String] = []
    var hasEnded = false
    var isClosed = false
  }

  private let state = Mutex(State())
  private let closing = Waiters<Void>()
  private let listener: Int32
  private let closes: Bool
  private let reading: Reading
  private let answer: @Sendable (_ head: String) -> [UInt8]
  package let port: UInt16

  /// How a request's body is read. Other modes than `all` use a small receive buffer.
  package enum Reading: Sendable {
    case all
    /// The body is not read. The connection stays open.
    case never
    /// The body is read in slices, with a pause after each.
    case slices(of: Int, every: Duration)
  }

  /// - Parameters:
  ///   - port: The port; 0 for any free port.
  ///   - closes: Whether a connection is closed after its first answer.
  ///   - answer: Returns the answer's bytes for the request's head.
  package init(
    port: UInt16 = 0, closes: Bool = true, reading: Reading = .all,
    _ answer: @escaping @Sendable (_ head: String) -> [UInt8]
  ) throws {
    (listener, self.port) = try Self.listen(port, reading)
    self.closes = closes
    self.reading = reading
    self.answer = answer
    Thread.detachNewThread { [self] in accept() }
  }

  package var url: String { "http://127.0.0.1:\(port)" }

  /// The first line of each request, in order.
  package var requests: [String] { state.withLock { $0.requests } }

  /// Stops listening and closes open connections.
  package func end() {
    // Hold the lock: otherwise a socket could be closed and its number reused by another connection.
    state.withLock { state in
      if !state.isClosed { _ = shutdown(listener, Int32(SHUT_RDWR)) }
      state.hasEnded = true
      for socket in state.open { _ = shutdown(socket, Int32(SHUT_RDWR)) }
    }
  }

  /// Returns when the port is free for another server.
  package func waitUntilEnded() async {
    await closing.wait(for: ()) { state.withLock { $0.isClosed } }
  }

  // MARK: Sockets

  private static func listen(_ port: UInt16, _ reading: Reading) throws -> (Int32, UInt16) {
    #if canImport(Glibc)
      let stream = Int32(SOCK_STREAM.rawValue)
    #else
      let stream = SOCK_STREAM
    #endif
    let listener = socket(AF_INET, stream, 0)
    var one: Int32 = 1
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    if case .all = reading {
    } else {
      var bytes: Int32 = 64 << 10
      setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isReady = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, size) == 0 && Self.startListening(listener) && getsockname(listener, $0, &size) == 0
      }
    }
    guard isReady else { throw TestFailure("no socket: errno \(errno)") }
    return (listener, UInt16(bigEndian: address.sin_port))
  }

  private static func startListening(_ socket: Int32) -> Bool {
    #if canImport(Glibc)
      Glibc.listen(socket, 64) == 0
    #elseif canImport(Musl)
      Musl.listen(socket, 64) == 0
    #else
      Darwin.listen(socket, 64) == 0
    #endif
  }

  private func accept() {
    defer {
      state.withLock { state in
        close(listener)
        state.isClosed = true
      }
      closing.resume { true }
    }
    while true {
      #if canImport(Glibc)
        let socket = Glibc.accept(listener, nil, nil)
      #elseif canImport(Musl)
        let socket = Musl.accept(listener, nil, nil)
      #else
        let socket = Darwin.accept(listener, nil, nil)
      #endif
      guard socket >= 0 else { return }
      #if canImport(Darwin)
        var one: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &one, socklen_t(MemoryLayout<Int32>.size))
      #endif
      state.withLock { state in
        state.open.insert(socket)
        if state.hasEnded { _ = shutdown(socket, Int32(SHUT_RDWR)) }
      }
      Thread.detachNewThread { [self] in serve(socket) }
    }
  }

  private func serve(_ socket: Int32) {
    defer {
      state.withLock { state in
        state.open.remove(socket)
        close(socket)
      }
    }
    while let head = readRequest(socket) {
      state.withLock { $0.requests.append(head.prefix { $0 != "\r\n" }.description) }
      guard write(answer(head), to: socket), !closes else { return }
    }
  }

  /// - Returns: The head of the next request, whose body is skipped; nil at the end.
  private func readRequest(_ socket: Int32) -> String? {
    var bytes: [UInt8] = []
    let end = Array("\r\n\r\n".utf8)
    while bytes.suffix(4) != end[...] {
      var byte: UInt8 = 0
      guard recv(socket, &byte, 1, 0) == 1 else { return nil }
      bytes.append(byte)
    }
    let head = String(decoding: bytes, as: UTF8.self)
    return readBody(Self.contentLength(head), socket) ? head : nil
  }

  /// - Returns: false if the connection ends first.
  private func readBody(_ length: Int, _ socket: Int32) -> Bool {
    var (sliceBytes, pause) = (64 << 10, Duration.zero)
    switch reading {
    case .all: break
    case .never: return waitForEnd()
    case .slices(let bytes, let every): (sliceBytes, pause) = (bytes, every)
    }
    var rest = length
    var slice = [UInt8](repeating: 0, count: sliceBytes)
    while rest > 0 {
      let count = recv(socket, &slice, min(rest, slice.count), 0)
      guard count > 0 else { return false }
      rest -= count
      if pause > .zero { Thread.sleep(forTimeInterval: pause / .seconds(1)) }
    }
    return true
  }

  private func waitForEnd() -> Bool {
    while !state.withLock({ $0.hasEnded }) { Thread.sleep(forTimeInterval: 0.01) }
    return false
  }

  private static func contentLength(_ head: String) -> Int {
    for line in head.lowercased().split(separator: "\r\n") where line.hasPrefix("content-length:") {
      return Int(line.dropFirst("content-length:".count).trimmingCharacters(in: .whitespaces)) ?? 0
    }
    return 0
  }

  private func write(_ bytes: [UInt8], to socket: Int32) -> Bool {
    #if canImport(Darwin)
      let flags: Int32 = 0
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, flags) }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}
