import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A connection that speaks as badly as it is told.
enum RawConnection {
  /// Sends `text`, then `next()` again and again; true when the server has closed the connection.
  static func isCutOff(port: Int, after text: String, next: @escaping @Sendable () -> String?) async throws -> Bool {
    try await withCheckedThrowingContinuation { done in
      Thread.detachNewThread { done.resume(with: Result { try talk(port: port, text, next) }) }
    }
  }

  private static func talk(port: Int, _ text: String, _ next: () -> String?) throws -> Bool {
    #if canImport(Darwin)
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #else
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    defer { close(descriptor) }
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
    // What paces the drops: waiting for an answer that does not come.
    var pause = timeval(tv_sec: 0, tv_usec: 250_000)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &pause, socklen_t(MemoryLayout<timeval>.size))
    transmit(text, descriptor)
    for _ in 0..<80 {
      var byte: UInt8 = 0
      let got = recv(descriptor, &byte, 1, 0)
      if got == 0 || (got < 0 && errno == ECONNRESET) { return true }
      if let more = next() { transmit(more, descriptor) }
    }
    return false
  }

  private static func transmit(_ text: String, _ descriptor: Int32) {
    #if canImport(Darwin)
      _ = Array(text.utf8).withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, 0) }
    #else
      _ = Array(text.utf8).withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    #endif
  }
}
