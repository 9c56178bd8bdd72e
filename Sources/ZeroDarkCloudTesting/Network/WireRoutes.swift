internal import ZDCProtocol

/// The wire API's routes by method, for counting requests and scripting faults.
///
/// ```swift
/// for route in WireRoutes.all { print(route) }  // the methods and patterns that FaultyTransport.fail takes
/// ```
public enum WireRoutes {
  /// A route of the wire API.
  public struct Route: Sendable, Hashable, CustomStringConvertible {
    /// The HTTP method.
    public let method: String
    /// The path, with parameters in braces.
    public let pattern: String

    /// The method and the pattern, separated by a space.
    public var description: String { "\(method) \(pattern)" }
  }

  /// All routes.
  public static let all: [Route] = [
    Route(method: "GET", pattern: Routes.health), Route(method: "GET", pattern: Routes.ready),
    Route(method: "GET", pattern: Routes.metrics), Route(method: "GET", pattern: Routes.info),
    Route(method: "POST", pattern: Routes.accounts), Route(method: "POST", pattern: Routes.challenge),
    Route(method: "POST", pattern: Routes.login), Route(method: "POST", pattern: Routes.deviceLogin),
    Route(method: "DELETE", pattern: Routes.session), Route(method: "GET", pattern: Routes.sessions),
    Route(method: "DELETE", pattern: Routes.sessionOfDevice), Route(method: "GET", pattern: Routes.keyring),
    Route(method: "POST", pattern: Routes.links), Route(method: "GET", pattern: Routes.audit),
    Route(method: "GET", pattern: Routes.chain), Route(method: "POST", pattern: Routes.chains),
    Route(method: "GET", pattern: Routes.handles),
    Route(method: "PUT", pattern: Routes.deviceLink), Route(method: "GET", pattern: Routes.deviceLink),
    Route(method: "PUT", pattern: Routes.deviceLinkAnswer), Route(method: "GET", pattern: Routes.deviceLinkAnswer),
    Route(method: "PUT", pattern: Routes.deviceLinkNonce), Route(method: "GET", pattern: Routes.deviceLinkNonce),
    Route(method: "PUT", pattern: Routes.tree), Route(method: "POST", pattern: Routes.zonePages),
    Route(method: "PUT", pattern: Routes.membership), Route(method: "DELETE", pattern: Routes.membership),
    Route(method: "GET", pattern: Routes.zones), Route(method: "GET", pattern: Routes.events),
    Route(method: "POST", pattern: Routes.commits), Route(method: "GET", pattern: Routes.zoneCommits),
    Route(method: "POST", pattern: Routes.records), Route(method: "POST", pattern: Routes.contents),
    Route(method: "POST", pattern: Routes.kept), Route(method: "GET", pattern: Routes.zoneState),
    Route(method: "GET", pattern: Routes.node), Route(method: "GET", pattern: Routes.content),
    Route(method: "GET", pattern: Routes.leafHashes), Route(method: "GET", pattern: Routes.leafProof),
    Route(method: "POST", pattern: Routes.messages), Route(method: "GET", pattern: Routes.inbox),
    Route(method: "POST", pattern: Routes.inboxEnvelopes), Route(method: "DELETE", pattern: Routes.inboxMessage),
    Route(method: "PUT", pattern: Routes.sender), Route(method: "DELETE", pattern: Routes.sender),
    Route(method: "POST", pattern: Routes.blobs),
    Route(method: "PUT", pattern: Routes.blobPart), Route(method: "GET", pattern: Routes.blobParts),
    Route(method: "POST", pattern: Routes.blobComplete), Route(method: "DELETE", pattern: Routes.blob),
  ]

  /// Returns the route of a request, or a route with its bare path if none matches.
  static func route(method: String, path: String) -> Route {
    let bare = path.prefix { $0 != "?" }
    let parts = bare.split(separator: "/")
    let known = all.first { route in
      let pattern = route.pattern.split(separator: "/")
      return route.method == method && pattern.count == parts.count
        && zip(pattern, parts).allSatisfy { $0.first == "{" || $0 == $1 }
    }
    return known ?? Route(method: method, pattern: String(bare))
  }
}
