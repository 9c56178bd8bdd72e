#if canImport(Darwin) && !os(macOS)
  public import Foundation
  internal import ZDCTransfers

  // What an app calls on platforms that suspend it (reference 3.1).

  extension ZeroDarkCloud {
    /// To be called when the app goes to the background: the system goes on with large downloads that were asked for with
    /// `canDownloadWhileInBackground`.
    public func handOverDownloads() async throws {
      try await managers?.downloads.handOver()
    }

    /// To be called from the app delegate's method of that name.
    ///
    /// - Returns: false if the session is not the framework's.
    public func handleEventsForBackgroundURLSession(
      _ identifier: String, completionHandler: @escaping @Sendable () -> Void
    ) -> Bool {
      managers?.downloads.takeEvents(ofSession: identifier, completionHandler) ?? false
    }
  }
#endif
