import Foundation
import ZDCProtocol

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A socket that sends any bytes a test wants, valid or not. Its calls block.
final class RawSocket: @unchecked Sendable {
  private let descriptor: Int32

  /// - Parameters:
  ///   - patienceMs: how long a read waits. The default is long: a busy machine answers late.
  ///   - receiveBuffer: bytes that the system takes in before they are read; nil: its default.
  init(port: Int, patienceMs: Int = 60_000, receiveBuffer: Int? = nil) throws {
    #if canImport(Darwin)
      descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #else
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    if var size = receiveBuffer.map(Int32.init) {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let connected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard connected == 0 else { throw POSIXError(.ECONNREFUSED) }
    var pause = timeval(tv_sec: numericCast(patienceMs / 1_000), tv_usec: numericCast(patienceMs % 1_000 * 1_000))
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &pause, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &pause, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(descriptor) }

  enum Received {
    case bytes([UInt8])
    case nothing
    case closed
  }

  func receive() -> Received {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let got = recv(descriptor, &buffer, buffer.count, 0)
    if got > 0 { return .bytes(Array(buffer[..<got])) }
    return got < 0 && [EAGAIN, EWOULDBLOCK, EINTR].contains(errno) ? .nothing : .closed
  }

  /// Whether there is something to receive: an answer, or the end.
  var hasNews: Bool {
    var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&poller, 1, 0) > 0
  }

  /// - Returns: false if the other side takes no more.
  @discardableResult
  func transmit(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      #if canImport(Darwin)
        let sent = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, 0) }
      #else
        let sent = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      #endif
      guard sent > 0 else { return false }
      rest = rest.dropFirst(sent)
    }
    return true
  }
}

enum RawConnection {
  /// The outcome of sending bytes.
  struct Talk: Sendable {
    /// Bytes behind the head that the sockets took.
    var sent = 0
    var answer: [UInt8] = []
    /// The server has ended the connection.
    var isClosed = false

    var status: Int? {
      let words = String(decoding: answer.prefix(64), as: UTF8.self).split(separator: " ")
      return words.dropFirst().first.flatMap { Int($0) }
    }

    var error: ServerError? {
      guard let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
      return try? JSONDecoder().decode(ServerError.self, from: Data(answer[end.upperBound...]))
    }
  }

  /// Sends `text`, then `next()` again and again; true when the server has closed the connection.
  static func isCutOff(port: Int, after text: String, next: @escaping @Sendable () -> String?) async throws -> Bool {
    try await onThread {
      // Waits for an answer that never comes; this sets the pace of the drops.
      let socket = try RawSocket(port: port, patienceMs: 250)
      socket.transmit(Array(text.utf8))
      for _ in 0..<80 {
        if case .closed = socket.receive() { return true }
        if let more = next() { socket.transmit(Array(more.utf8)) }
      }
      return false
    }
  }

  /// Sends a head and what follows it, piece by piece until there is none or the server says something, and reads what
  /// it says until it closes.
  static func exchange(
    port: Int, _ head: String, body: @escaping @Sendable (_ index: Int) -> [UInt8]?
  ) async throws -> Talk {
    try await onThread {
      let socket = try RawSocket(port: port)
      var talk = Talk()
      socket.transmit(Array(head.utf8))
      var index = 0
      while talk.sent < 1 << 30, !socket.hasNews, let piece = body(index), socket.transmit(piece) {
        talk.sent += piece.count
        index += 1
      }
      while true {
        switch socket.receive() {
        case .bytes(let bytes): talk.answer += bytes
        case .nothing: return talk
        case .closed:
          talk.isClosed = true
          return talk
        }
      }
    }
  }

  static func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { done in
      Thread.detachNewThread { done.resume(with: Result { try body() }) }
    }
  }
}
