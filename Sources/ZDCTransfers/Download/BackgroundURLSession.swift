#if canImport(Darwin) && !os(macOS)
  package import Foundation
  package import ZDCClientAPI
  internal import ZDCProtocol
  internal import ZDCSupport

  /// The system's background URL session: makes requests while the app is suspended or after the system has ended it.
  ///
  /// Thin on purpose: ``TransferHandOver`` decides. The system sees ciphertext and the session's token, as it does
  /// anyway.
  package final class BackgroundURLSession: NSObject, SystemTransfers, URLSessionDownloadDelegate {
    private static let identifierPrefix = "ZeroDarkCloud."
    /// The longest time for which the system tries to complete a request.
    private static let keptFor: TimeInterval = 24 * 3_600

    package let identifier: String
    private let state = Locked(State())

    private struct State: Sendable {
      var session: URLSession?
      var events: SystemTransferEvents?
      var isStopped = false
    }

    /// - Parameter name: the same in every launch, also after an update of the app.
    package init(name: String) {
      identifier = Self.identifierPrefix + name
    }

    /// Returns a session unless the process is an app extension: the system connects only one process to it.
    package static func forApp(name: String) -> BackgroundURLSession? {
      Bundle.main.bundlePath.hasSuffix(".appex") ? nil : BackgroundURLSession(name: name)
    }

    // MARK: SystemTransfers

    package func connect(_ events: SystemTransferEvents) {
      state.withLock { state in
        guard state.session == nil, !state.isStopped else { return }
        state.events = events
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        configuration.sessionSendsLaunchEvents = true
        configuration.httpShouldSetCookies = false
        configuration.timeoutIntervalForResource = Self.keptFor
        state.session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
      }
    }

    package func start(_ transfer: SystemTransfer) async throws {
      // Inside the lock, so that no task is created in a session that has been invalidated.
      try state.withLock { state in
        guard let session = state.session, let request = transfer.urlRequest else { throw CancellationError() }
        let task: URLSessionTask
        if let file = transfer.file {
          task = session.uploadTask(with: request, fromFile: file)
        } else {
          task = session.downloadTask(with: request)
        }
        task.taskDescription = transfer.id.text
        task.resume()
      }
    }

    package func pending() async -> [String] { await tasks().compactMap(\.taskDescription) }

    package func cancel(_ ids: Set<String>) async {
      for task in await tasks() where task.taskDescription.map(ids.contains) ?? false { task.cancel() }
    }

    private func tasks() async -> [URLSessionTask] {
      await state.withLock { $0.session }?.allTasks ?? []
    }

    /// Ends the system's transfers and releases the session. Another object may then create a session of the same name.
    package func disconnect() {
      let session = state.withLock { state in
        state.isStopped = true
        defer { state.session = nil }
        return state.session
      }
      session?.invalidateAndCancel()
    }

    // MARK: The system's reports

    private var events: SystemTransferEvents? { state.withLock { $0.events } }

    package func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
      guard let id = downloadTask.taskDescription,
        let status = (downloadTask.response as? HTTPURLResponse)?.statusCode
      else { return }
      events?.received(id, status, location)
    }

    package func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      guard let id = task.taskDescription else { return }
      events?.ended(id)
    }

    package func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
      events?.allDelivered()
    }
  }

  extension SystemTransfer {
    fileprivate var urlRequest: URLRequest? {
      guard let url = URL(string: origin + request.path) else { return nil }
      var translated = URLRequest(url: url)
      translated.httpMethod = request.method.rawValue
      for (name, value) in request.headers { translated.setValue(value, forHTTPHeaderField: name) }
      return translated
    }
  }
#endif
