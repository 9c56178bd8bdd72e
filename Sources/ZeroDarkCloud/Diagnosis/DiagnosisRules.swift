internal import ZDCClientAPI
internal import ZDCProtocol

/// Turns a response into a verdict, a finding and a remedy for the user.
enum DiagnosisRules {
  static func serverAdvice(_ error: any Error) -> String? {
    if (error as? ServerError)?.code == .unsupportedProtocol {
      return "update the older one of the server and this program"
    }
    return switch (error as? TransportError)?.code {
    case .badAnswer, .proxyAnswered:
      "check that the address is that of zdc-server and that the proxy in front passes every path to it"
    case .refused: "start zdc-server, or the proxy in front of it"
    default: nil
    }
  }

  /// - Returns: nil if no response arrived over an encrypted connection: a rejected certificate is an encryption
  ///   failure.
  static func encryption(origin: String, isConnected: Bool) -> ZDCConnectionCheck? {
    guard origin.hasPrefix("https:") else {
      return ZDCConnectionCheck(.encryption, .passed, "plain HTTP, which stays on this machine")
    }
    return isConnected ? ZDCConnectionCheck(.encryption, .passed, "TLS 1.2 or newer") : nil
  }

  /// The request spends an unknown part of its time on the way to the server. So the clocks differ by at least the
  /// distance of the server's time from the interval between request and response.
  static func clock(server: UInt64, before: UInt64, after: UInt64) -> ZDCConnectionCheck {
    let distance = server < before ? before - server : server > after ? server - after : 0
    let seconds = distance / 1_000
    guard seconds < 60 else {
      return ZDCConnectionCheck(
        .clock, .warning, "the clocks of this device and of the server are \(seconds) s apart",
        advice: "synchronize both clocks with NTP; until then, times of changes are wrong")
    }
    return ZDCConnectionCheck(.clock, .passed, "less than a minute apart from the server's")
  }

  static func latency(_ duration: Duration) -> ZDCConnectionCheck {
    let milliseconds = milliseconds(duration)
    let finding = "\(milliseconds) ms for a small request"
    guard milliseconds < 1_000 else {
      return ZDCConnectionCheck(
        .latency, .warning, finding, advice: "expect several seconds for each change; look for a slow network or server"
      )
    }
    return ZDCConnectionCheck(.latency, .passed, finding)
  }

  static func bodySize(_ count: Int, status: Int, isFromServer: Bool) -> ZDCConnectionCheck {
    guard !isFromServer else {
      return ZDCConnectionCheck(.bodySize, .passed, "\(count) bytes in one request reach the server")
    }
    return ZDCConnectionCheck(
      .bodySize, .failed,
      "a proxy in front of the server answered a request of \(count) bytes itself, with status \(status)",
      advice: bodySizeAdvice)
  }

  static let bodySizeAdvice = "let the proxy pass bodies of 16 MiB; in nginx: client_max_body_size 16m;"

  static func silentEvents(_ timeout: Duration) -> ZDCConnectionCheck {
    ZDCConnectionCheck(
      .eventStream, .failed,
      "no event arrived within \(timeout.components.seconds) s: a proxy may be holding them back",
      advice: eventAdvice)
  }

  static let eventAdvice =
    "let the proxy pass responses as they come and keep them open; in nginx: proxy_buffering off; proxy_read_timeout 1h;"

  static func milliseconds(_ duration: Duration) -> Int64 {
    duration.components.seconds * 1_000 + duration.components.attoseconds / 1_000_000_000_000_000
  }

  static func text(_ error: any Error) -> String {
    switch error {
    case let error as TransportError: "\(error)"
    case let error as ServerError: "the server answered \(error.code.rawValue)"
    case let error as ZDCSecurityError: "the answer does not verify (\(error.code.rawValue))"
    default: "the request failed (\(type(of: error)))"
    }
  }
}
