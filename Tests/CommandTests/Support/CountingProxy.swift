import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A TCP proxy on loopback between `zdc` and `zdc-server` that counts traffic. At a given moment it runs a strike and
/// cuts every connection.
///
/// Its port stays the same when the server behind it is replaced.
final class CountingProxy: Sendable {
  private struct State {
    var meter = Meter()
    var strike: (@Sendable () -> Void)?
    var waves: RequestWaves?
    var backend: UInt16?
    var isCut = false
    var links: [ObjectIdentifier: Link] = [:]
  }

  /// The two ends of one connection, closed when the last reference goes away.
  private final class Link: Sendable {
    let client: Int32
    let server: Int32
    let awaitsCommitAnswer = Mutex(false)

    init(client: Int32, server: Int32) {
      self.client = client
      self.server = server
    }

    func cut() {
      for socket in [client, server] { shutdown(socket, Loopback.bothWays) }
    }

    deinit {
      close(client)
      close(server)
    }
  }

  private let state = Mutex(State())
  private let listener: Int32
  let port: UInt16

  init() throws {
    (listener, port) = try Loopback.listen()
    Thread.detachNewThread { [self] in accept() }
  }

  /// Shuts the proxy down and cuts all open connections.
  func end() {
    shutdown(listener, Loopback.bothWays)
    cut()
  }

  /// Sets the server port for new connections.
  func lead(to backend: UInt16) {
    state.withLock { $0.backend = backend }
  }

  /// Resets the counters. At the moment, if one is given, runs `strike` and cuts everything.
  func arm(_ moment: Moment? = nil, strike: (@Sendable () -> Void)? = nil) {
    state.withLock { state in
      state.meter = Meter(moment)
      state.strike = strike
      state.isCut = false
    }
  }

  /// Counts the round trips of all traffic from now on; nil lets all traffic pass immediately.
  func count(_ waves: RequestWaves?) {
    state.withLock { $0.waves = waves }
  }

  /// Continues to count, without a strike.
  func disarm() {
    state.withLock { $0.strike = nil }
  }

  /// The traffic since the proxy was armed, and whether the moment was reached.
  var result: (counts: Meter.Counts, hasStruck: Bool) {
    state.withLock { ($0.meter.counts, $0.isCut) }
  }

  // MARK: Connections

  private func accept() {
    while true {
      let client = Loopback.accept(listener)
      if client < 0 { break }
      let backend = state.withLock { $0.isCut ? nil : $0.backend }
      guard let backend, let server = Loopback.connect(to: backend) else {
        close(client)
        continue
      }
      let link = Link(client: client, server: server)
      state.withLock { $0.links[ObjectIdentifier(link)] = link }
      for direction in [Direction.up, .down] {
        Thread.detachNewThread { [self] in pump(link, direction) }
      }
    }
    close(listener)
  }

  private func pump(_ link: Link, _ direction: Direction) {
    let (source, target) = direction == .up ? (link.client, link.server) : (link.server, link.client)
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = read(source, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      if direction == .up { state.withLock { $0.waves }?.wait(with: buffer[..<count]) }
      guard pass(buffer[..<count], link, direction, target) else { break }
    }
    link.cut()
    state.withLock { _ = $0.links.removeValue(forKey: ObjectIdentifier(link)) }
  }

  /// - Returns: whether the connection stays open.
  private func pass(_ slice: ArraySlice<UInt8>, _ link: Link, _ direction: Direction, _ target: Int32) -> Bool {
    let verdict = link.awaitsCommitAnswer.withLock { awaits in
      state.withLock { state -> (count: Int, strike: (@Sendable () -> Void)?, goesOn: Bool) in
        if state.isCut { return (0, nil, false) }
        let (count, isMoment) = state.meter.pass(slice, direction, awaitsCommitAnswer: &awaits)
        let strike = isMoment ? state.strike : nil
        state.isCut = strike != nil
        return (count, strike, strike == nil)
      }
    }
    let isSent = Loopback.send(slice.prefix(verdict.count), to: target)
    if let strike = verdict.strike {
      strike()
      cut()
    }
    return isSent && verdict.goesOn
  }

  private func cut() {
    for link in state.withLock({ Array($0.links.values) }) { link.cut() }
  }
}

/// The socket calls that differ between platforms.
private enum Loopback {
  static let bothWays = Int32(SHUT_RDWR)

  private static func socket() -> Int32 {
    #if canImport(Glibc) || canImport(Musl)
      Foundation.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    #else
      Foundation.socket(AF_INET, SOCK_STREAM, 0)
    #endif
  }

  private static func address(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
    return address
  }

  private static func with<T>(
    _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>, inout socklen_t) -> T
  ) -> T {
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
    }
  }

  static func listen() throws -> (socket: Int32, port: UInt16) {
    let listener = socket()
    var own = address(0)
    guard listener >= 0, with(&own, { bind(listener, $0, $1) }) == 0, Foundation.listen(listener, 128) == 0,
      with(&own, { getsockname(listener, $0, &$1) }) == 0
    else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL) }
    return (listener, UInt16(bigEndian: own.sin_port))
  }

  static func accept(_ listener: Int32) -> Int32 {
    while true {
      let client = Foundation.accept(listener, nil, nil)
      if client < 0 && (errno == EINTR || errno == ECONNABORTED) { continue }
      if client >= 0 { prepare(client) }
      return client
    }
  }

  static func connect(to port: UInt16) -> Int32? {
    let server = socket()
    var target = address(port)
    guard with(&target, { Foundation.connect(server, $0, $1) }) == 0 else {
      close(server)
      return nil
    }
    prepare(server)
    return server
  }

  private static func prepare(_ socket: Int32) {
    var on: Int32 = 1
    setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    #if canImport(Darwin)
      setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
    #endif
  }

  static func send(_ bytes: ArraySlice<UInt8>, to socket: Int32) -> Bool {
    #if canImport(Darwin)
      let flags: Int32 = 0
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.send(socket, $0.baseAddress, $0.count, flags) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}
