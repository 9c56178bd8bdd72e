import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// A proxy in front of PostgreSQL that can break a connection at the COMMIT of a write.
///
/// It reads what libpq sends, far enough to know statements by their names.
final class PostgresProxy: Sendable {
  enum Fault: Sendable, CaseIterable {
    /// The database never gets the COMMIT.
    case beforeCommit
    /// The database has committed, and its answer is lost.
    case afterCommit
  }

  /// The URL of the same database, by way of this proxy.
  let url: String
  private let folder: String
  private let channel: any Channel
  private let plan: Plan

  private init(url: String, folder: String, channel: any Channel, plan: Plan) {
    (self.url, self.folder, self.channel, self.plan) = (url, folder, channel, plan)
  }

  /// Breaks the connection of the next write. Upkeep does not count.
  func breakNextWrite(_ fault: Fault) { plan.next.withLock { $0 = fault } }

  /// Returns how many statements that begin with this text have passed.
  func count(of beginning: String) -> Int { plan.passed.withLock { $0.count { $0.hasPrefix(beginning) } } }

  /// Returns what libpq sent for each write that has begun its COMMIT, by round trips: a list of statements for each.
  var writes: [[[String]]] { plan.writes.withLock { $0 } }

  /// Whether the fault that was asked for has happened.
  var hasBroken: Bool { plan.next.withLock { $0 == nil } }

  static func with(_ url: String, _ body: (PostgresProxy) async throws -> Void) async throws {
    let parts = url.components(separatedBy: "host=")
    let folder = NSTemporaryDirectory() + "/zdc-px-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let plan = Plan()
    let channel = try await listen("\(folder)/\(socketName)", target: "\(parts[1])/\(socketName)", plan)
    let proxy = PostgresProxy(url: "\(parts[0])host=\(folder)", folder: folder, channel: channel, plan: plan)
    let result: Result<Void, any Error>
    do { result = .success(try await body(proxy)) } catch { result = .failure(error) }
    try await channel.close()
    try FileManager.default.removeItem(atPath: folder)
    try result.get()
  }

  private static let socketName = ".s.PGSQL.5432"

  private static func listen(_ path: String, target: String, _ plan: Plan) async throws -> any Channel {
    try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { client in
        let link = Link(plan)
        return ClientBootstrap(group: client.eventLoop)
          .channelInitializer { database in
            database.eventLoop.makeCompletedFuture {
              try database.pipeline.syncOperations.addHandler(Side(to: client) { link.answer($0) })
            }
          }
          .connect(unixDomainSocketPath: target)
          .flatMapThrowing { database in
            try client.pipeline.syncOperations.addHandler(Side(to: database) { link.request($0) })
          }
      }
      .bind(unixDomainSocketPath: path).get()
  }

  fileprivate final class Plan: Sendable {
    let next = Mutex<Fault?>(nil)
    let passed = Mutex<[String]>([])
    let writes = Mutex<[[[String]]]>([])
  }

  /// What becomes of bytes that arrive at one side.
  fileprivate enum Step {
    case pass
    case drop
    case close
  }

  /// Passes bytes on to the other side.
  private final class Side: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let other: any Channel
    private let step: (ByteBuffer) -> Step

    init(to other: any Channel, step: @escaping (ByteBuffer) -> Step) { (self.other, self.step) = (other, step) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = unwrapInboundIn(data)
      switch step(bytes) {
      case .pass: other.writeAndFlush(bytes, promise: nil)
      case .drop: break
      case .close:
        context.close(promise: nil)
        other.close(promise: nil)
      }
    }

    func channelInactive(context: ChannelHandlerContext) { other.close(promise: nil) }
  }
}

/// One connection. Both sides run on one event loop.
private final class Link: Sendable {
  private struct State {
    var sent = ByteBuffer()
    var hasStarted = false
    var statements: [String: String] = [:]
    /// The statements of the open transaction, and the same by round trips.
    var transaction: [String] = []
    var trips: [[String]] = [[]]
    var isLosing = false
    var lost: [UInt8] = []
  }

  private let plan: PostgresProxy.Plan
  private let state = Mutex(State())

  init(_ plan: PostgresProxy.Plan) { self.plan = plan }

  func request(_ bytes: ByteBuffer) -> PostgresProxy.Step {
    state.withLock { state in
      state.sent.writeImmutableBuffer(bytes)
      var step = PostgresProxy.Step.pass
      while let sql = Self.nextStatement(&state) {
        if sql.hasPrefix("BEGIN") { (state.transaction, state.trips) = ([], [[]]) }
        state.transaction.append(sql)
        state.trips[state.trips.count - 1].append(sql)
        if sql == "COMMIT", isWrite(state.transaction) { plan.writes.withLock { $0.append(state.trips) } }
        plan.passed.withLock { $0.append(sql) }
        guard sql == "COMMIT", isWrite(state.transaction), let fault = plan.next.withLock({ $0.take() }) else {
          continue
        }
        if fault == .beforeCommit { step = .close } else { state.isLosing = true }
      }
      return step
    }
  }

  func answer(_ bytes: ByteBuffer) -> PostgresProxy.Step {
    state.withLock { state in
      guard state.isLosing else { return .pass }
      state.lost += Array(bytes.readableBytesView)
      return String(decoding: state.lost, as: UTF8.self).contains("COMMIT\0") ? .close : .drop
    }
  }

  private func isWrite(_ transaction: [String]) -> Bool {
    transaction.first == "BEGIN" && !transaction.contains { $0.contains("pg_advisory_xact_lock") }
  }

  /// Returns the next statement that is executed; nil if more bytes are needed.
  private static func nextStatement(_ state: inout State) -> String? {
    while var message = nextMessage(&state) {
      switch message.type {
      case UInt8(ascii: "P"):
        let name = message.body.readNullTerminatedString() ?? ""
        state.statements[name] = message.body.readNullTerminatedString() ?? ""
      case UInt8(ascii: "B"):
        _ = message.body.readNullTerminatedString()
        return state.statements[message.body.readNullTerminatedString() ?? ""] ?? ""
      // The end of what one round trip sends.
      case UInt8(ascii: "S"): state.trips.append([])
      default: break
      }
    }
    return nil
  }

  /// The first message of a connection has no type.
  private static func nextMessage(_ state: inout State) -> (type: UInt8, body: ByteBuffer)? {
    let start = state.sent.readerIndex
    let typeBytes = state.hasStarted ? 1 : 0
    guard let length = state.sent.getInteger(at: start + typeBytes, as: UInt32.self),
      let body = state.sent.getSlice(at: start + typeBytes + 4, length: Int(length) - 4)
    else { return nil }
    let type = state.hasStarted ? state.sent.getInteger(at: start, as: UInt8.self) ?? 0 : 0
    state.hasStarted = true
    state.sent.moveReaderIndex(forwardBy: typeBytes + Int(length))
    state.sent.discardReadBytes()
    return (type, body)
  }
}
