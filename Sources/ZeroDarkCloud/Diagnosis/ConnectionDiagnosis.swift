internal import Foundation
internal import ZDCClientAPI
internal import ZDCProtocol

/// Sends the requests that an engine sends, and gives a verdict on each response.
struct ConnectionDiagnosis: Sendable {
  let api: ServerAPI
  let now: @Sendable () -> UInt64
  /// The maximum wait for the first event.
  var eventTimeout: Duration = .seconds(10)

  private var origin: String { api.connection.origin }

  func run() async throws -> [ZDCConnectionCheck] {
    let (server, info) = try await checkServer()
    var checks = [
      server, DiagnosisRules.encryption(origin: origin, isConnected: info != nil) ?? Self.skipped(.encryption),
    ]
    guard let info else {
      checks += [.clock, .latency, .session, .bodySize, .eventStream].map(Self.skipped)
      return checks
    }
    checks.append(DiagnosisRules.clock(server: info.timeMs, before: info.askedMs, after: info.answeredMs))
    checks.append(try await checkLatency())
    let session = try await checkSession()
    checks.append(session)
    guard session.verdict == .passed else { return checks + [.bodySize, .eventStream].map(Self.skipped) }
    checks.append(try await checkBodySize())
    checks.append(try await checkEventStream())
    return checks
  }

  private static func skipped(_ step: ZDCConnectionCheck.Step) -> ZDCConnectionCheck {
    ZDCConnectionCheck(step, .skipped, "not checked, because an earlier check failed")
  }

  // MARK: Steps

  private struct Answered {
    var timeMs: UInt64
    var askedMs: UInt64
    var answeredMs: UInt64
  }

  private func checkServer() async throws -> (ZDCConnectionCheck, Answered?) {
    let asked = now()
    do {
      let info = try await api.info()
      let check = ZDCConnectionCheck(.server, .passed, "\(origin) is a ZeroDark server")
      return (check, Answered(timeMs: info.timeMs, askedMs: asked, answeredMs: now()))
    } catch {
      return (try failed(.server, error, advice: DiagnosisRules.serverAdvice(error)), nil)
    }
  }

  private func checkLatency() async throws -> ZDCConnectionCheck {
    var durations: [Duration] = []
    do {
      for _ in 0..<3 {
        let begin = ContinuousClock.now
        _ = try await api.info()
        durations.append(ContinuousClock.now - begin)
      }
    } catch { return try failed(.latency, error) }
    return DiagnosisRules.latency(durations.sorted()[1])
  }

  private func checkSession() async throws -> ZDCConnectionCheck {
    do {
      _ = try await api.zones(since: nil)
      return ZDCConnectionCheck(.session, .passed, "the server accepts this device")
    } catch { return try failed(.session, error) }
  }

  /// Sends a body as large as the largest upload part, to an upload that does not exist. A proxy that refuses large
  /// bodies answers instead of the server.
  private func checkBodySize() async throws -> ZDCConnectionCheck {
    let count = ContentGeometry.partRange(0, cipherLength: Limits.contentCipherBytes).count
    var request = TransportRequest.bytes(
      .put, Routes.path(Routes.blobPart, BlobID.random().text, "0"), [UInt8](repeating: 0, count: count))
    request.headers[WireHeaders.partHash] = ZBase32.encode([UInt8](repeating: 0, count: 32))
    request.timeout = TransferPace.headDeadline(sending: UInt64(count))
    do {
      request.headers["authorization"] = "Bearer \(try await api.session.currentToken())"
      let response = try await api.connection.transport.send(request)
      let body = try await response.body.collect(upTo: Limits.jsonBytes)
      return DiagnosisRules.bodySize(count, status: response.status, isFromServer: Self.isServerError(body))
    } catch { return try failed(.bodySize, error, advice: DiagnosisRules.bodySizeAdvice) }
  }

  /// Whether the body is an error in the format of PROTOCOL 4.6, which no proxy produces.
  private static func isServerError(_ body: [UInt8]) -> Bool {
    struct Form: Decodable {
      var code: String
      var message: String
    }
    guard JSONForm.isAcceptable(body) else { return false }
    return (try? JSONDecoder().decode(Form.self, from: Data(body))) != nil
  }

  private func checkEventStream() async throws -> ZDCConnectionCheck {
    let begin = ContinuousClock.now
    do {
      guard try await firstEvent() else { return DiagnosisRules.silentEvents(eventTimeout) }
      let elapsed = DiagnosisRules.milliseconds(ContinuousClock.now - begin)
      return ZDCConnectionCheck(.eventStream, .passed, "the first event arrived after \(elapsed) ms")
    } catch { return try failed(.eventStream, error, advice: DiagnosisRules.eventAdvice) }
  }

  /// Returns false if no event arrives in time.
  private func firstEvent() async throws -> Bool {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        var events = api.events(since: nil).makeAsyncIterator()
        guard try await events.next() != nil else { throw TransportError(.cut, origin: origin) }
        return true
      }
      group.addTask {
        try await Task.sleep(for: eventTimeout)
        return false
      }
      defer { group.cancelAll() }
      return try await group.next() ?? false
    }
  }

  private func failed(
    _ step: ZDCConnectionCheck.Step, _ error: any Error, advice: String? = nil
  ) throws -> ZDCConnectionCheck {
    if error is CancellationError { throw error }
    return ZDCConnectionCheck(step, .failed, DiagnosisRules.text(error), advice: advice)
  }
}
