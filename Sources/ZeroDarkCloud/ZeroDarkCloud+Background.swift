internal import Foundation
internal import ZDCSync
internal import ZDCTransfers

#if canImport(UIKit) && !os(watchOS)
  internal import UIKit
#endif

// Transfers that the system continues while the app is suspended.

extension ZeroDarkCloud {
  /// Hands downloads and uploads over to the system, which continues them while the app is suspended and after the
  /// system has ended it.
  ///
  /// Call this when the app moves to the background, inside a background task. Handed over are downloads that were
  /// requested with `canDownloadWhileInBackground`, the parts of uploads in progress, and commits that are being sent.
  /// When it returns, the parts are sealed in files, up to 256 MiB in total, and the system has up to 200 requests.
  /// Everything else resumes when the app returns, or at its next launch.
  ///
  /// ```swift
  /// try await zdc.handOverTransfers()
  /// ```
  ///
  /// Does nothing while the database is locked, in an app extension, and on systems that do not suspend apps.
  ///
  /// - Throws: `ZDCError` with `diskFull` or `fileFailure` if files could not be written, `ZDCTransportError` or
  ///   `ZDCServerError` if there is no session with the server. Requests that were handed over before stay with the system.
  public func handOverTransfers() async throws {
    guard let managers, try await managers.handOver.begin(.everything) else { return }
    // The smallest and most valuable first.
    try await managers.sync.handOverRequests()
    try await managers.downloads.handOverDownloads()
    try await managers.handOver.uploadsAreStaged()
  }

  /// Hands only downloads over to the system. Uploads stop while the app is suspended.
  ///
  /// - Throws: as ``handOverTransfers()``.
  public func handOverDownloads() async throws {
    guard let managers, try await managers.handOver.begin(.downloads) else { return }
    try await managers.downloads.handOverDownloads()
  }

  /// Continues in this process what ``handOverTransfers()`` handed over, as far as the system has not done it yet.
  ///
  /// On iOS, tvOS and visionOS this happens automatically when the app becomes active. On watchOS, call it when the
  /// scene becomes active. Without it, transfers of this process wait until the system has ended theirs.
  public func takeBackTransfers() {
    managers?.handOver.end()
  }

  /// Handles the events of a background URL session. Call this from the app delegate's method of the same name, after
  /// unlocking the database.
  ///
  /// Before the completion handler, downloads that have arrived are delivered to the delegate, and uploads are committed
  /// as far as possible within 20 seconds.
  ///
  /// - Parameters:
  ///   - identifier: the session's identifier, as the system passes it.
  ///   - completionHandler: called once, on the main queue, if the session is the framework's.
  /// - Returns: false if the session does not belong to the framework, or the database is locked.
  @discardableResult
  public func handleEventsForBackgroundURLSession(
    _ identifier: String, completionHandler: @escaping @Sendable () -> Void
  ) -> Bool {
    managers?.handOver.takeEvents(ofSession: identifier, completionHandler) ?? false
  }
}

extension Managers {
  /// The time that the results of the system's transfers may take. The system grants an app about half a minute.
  private static let resultTime = Duration.seconds(20)

  /// Delivers downloads that have arrived and commits uploads.
  static func useResults(_ downloads: ZDCDownloadManager, _ sync: ZDCSyncManager) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        await downloads.deliverResumed()
        await sync.syncAfterHandOver()
      }
      group.addTask { do { try await Task.sleep(for: resultTime) } catch {} }
      await group.next()
      group.cancelAll()
    }
  }

  /// Takes transfers back whenever the app becomes active.
  func observeActivation() {
    #if canImport(UIKit) && !os(watchOS)
      // Not removed: after the database is closed, the object is gone and the block does nothing.
      _ = NotificationCenter.default.addObserver(
        forName: UIApplication.didBecomeActiveNotification, object: nil, queue: nil
      ) { [weak handOver] _ in handOver?.end() }
    #endif
  }
}
