import ZDCServer

/// Warns about settings that an operator may have made by mistake.
enum ServeWarnings {
  static func all(_ settings: Configuration, hasInvites: Bool) -> [String] {
    var warnings: [String] = []
    if settings.tls == nil, !settings.isLoopback {
      warnings.append(
        "plain HTTP on \(settings.host): give --tls-cert and --tls-key, or listen on loopback behind a proxy with TLS")
    }
    if settings.effectiveRegistration == .invite, !hasInvites {
      warnings.append("registration needs an invite, and there are none: give --invite-file")
    }
    if settings.isLoopback, !settings.isDevelopment, settings.trustedProxies.isEmpty {
      warnings.append(
        "with an origin on loopback, all clients of a proxy count as one: name the proxy with --trusted-proxy")
    }
    if settings.adminSocket == nil {
      warnings.append(
        "the data folder's path is too long for a socket: zdc-server admin works only with --admin-socket")
    }
    return warnings
  }
}
