#if canImport(Darwin) && !os(macOS)
  public import Foundation
  internal import ZDCTransfers

  // Calls for apps on platforms that suspend them.

  extension ZeroDarkCloud {
    /// Hands large downloads to the system, which continues them while the app is suspended. Only downloads requested
    /// with `canDownloadWhileInBackground` are handed over. Call this when the app moves to the background.
    public func handOverDownloads() async throws {
      try await managers?.downloads.handOver()
    }

    /// Handles the events of a background URL session. Call this from the app delegate's method of the same name.
    ///
    /// - Returns: false if the session does not belong to the framework.
    public func handleEventsForBackgroundURLSession(
      _ identifier: String, completionHandler: @escaping @Sendable () -> Void
    ) -> Bool {
      managers?.downloads.takeEvents(ofSession: identifier, completionHandler) ?? false
    }
  }
#endif
