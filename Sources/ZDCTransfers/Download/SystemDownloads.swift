#if canImport(Darwin) && !os(macOS)
  internal import Foundation
  internal import ZDCProtocol
  internal import ZDCSupport

  /// Lets the system fetch the rest of large downloads while the app is suspended or terminated.
  ///
  /// Thin on purpose: files that the system delivers are put beside the unfinished file. The ordinary transfer, in this
  /// launch or in the next, takes them over and verifies them leaf by leaf. The system sees ciphertext and the
  /// session's token, as it does anyway.
  final class SystemDownloads: NSObject, URLSessionDownloadDelegate {
    static let identifierPrefix = "ZeroDarkCloud."

    private let partials: PartialFolder
    private let finished: @Sendable () -> Void
    private let state = Locked(State())
    let identifier: String

    private struct State: Sendable {
      var session: URLSession?
      var eventsHandled: (@Sendable () -> Void)?
      var isStopped = false

      mutating func takeEventsHandled() -> (@Sendable () -> Void)? {
        defer { eventsHandled = nil }
        return eventsHandled
      }
    }

    /// - Parameters:
    ///   - name: the same in every launch, also after an update of the app.
    ///   - finished: called when a file has arrived, so that waiting transfers can continue.
    init(name: String, partials: PartialFolder, finished: @escaping @Sendable () -> Void) {
      identifier = Self.identifierPrefix + name
      self.partials = partials
      self.finished = finished
    }

    /// Connects to the system's downloads for this app, no matter which launch requested them. Call this inside the
    /// lock, so that no caller uses a session that has been invalidated.
    ///
    /// - Returns: nil after ``stop()``: the name is free for another session.
    private func connected(_ state: inout State) -> URLSession? {
      if state.isStopped { return nil }
      if let session = state.session { return session }
      let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
      configuration.sessionSendsLaunchEvents = true
      state.session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
      return state.session
    }

    /// Ends the system's downloads and releases the session. Files that have arrived stay. Another object may then
    /// create a session of the same name. Also confirms the system's events as handled, because the system waits for
    /// that.
    func stop() {
      let (session, handled) = state.withLock { state in
        state.isStopped = true
        defer { state.session = nil }
        return (state.session, state.takeEventsHandled())
      }
      session?.invalidateAndCancel()
      Self.call(handled)
    }

    func takeEvents(_ handled: @escaping @Sendable () -> Void) {
      let isOver = state.withLock { state in
        guard connected(&state) != nil else { return true }
        state.eventsHandled = handled
        return false
      }
      if isOver { Self.call(handled) }
    }

    private static func call(_ handled: (@Sendable () -> Void)?) {
      if let handled { DispatchQueue.main.async(execute: handled) }
    }

    /// Fetches a blob from `offset` on. Does nothing after ``stop()``.
    func fetch(_ request: URLRequest, _ blob: BlobID, from offset: UInt64) {
      state.withLock { state in
        guard let task = connected(&state)?.downloadTask(with: request) else { return }
        task.taskDescription = "\(blob.text) \(offset)"
        task.resume()
      }
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
      let parts = downloadTask.taskDescription?.split(separator: " ") ?? []
      guard parts.count == 2, let blob = BlobID(text: String(parts[0])), let offset = UInt64(parts[1]),
        let status = (downloadTask.response as? HTTPURLResponse)?.statusCode, status == (offset == 0 ? 200 : 206)
      else { return }
      // If the file cannot be moved, the ordinary transfer fetches it again.
      do { try partials.leave(location, of: blob, from: offset) } catch { return }
      finished()
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
      Self.call(state.withLock { $0.takeEventsHandled() })
    }
  }
#endif
