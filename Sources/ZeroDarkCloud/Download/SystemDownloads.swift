#if canImport(Darwin) && !os(macOS)
  internal import Foundation
  internal import ZDCProtocol

  /// Lets the system fetch the rest of large downloads while the app is suspended or gone.
  ///
  /// Thin on purpose: what the system brings is put beside the unfinished file, and the ordinary transfer, in this launch
  /// or in the next, takes it over and verifies it leaf by leaf. The system sees ciphertext and the session's token, as it
  /// does anyway.
  final class SystemDownloads: NSObject, URLSessionDownloadDelegate {
    static let identifierPrefix = "ZeroDarkCloud."

    private let partials: PartialFolder
    private let finished: @Sendable () -> Void
    private let session = Locked<URLSession?>(nil)
    private let eventsHandled = Locked<(@Sendable () -> Void)?>(nil)
    let identifier: String

    /// - Parameters:
    ///   - name: the same in every launch, also after an update of the app.
    ///   - finished: something has come; transfers that wait may go on.
    init(name: String, partials: PartialFolder, finished: @escaping @Sendable () -> Void) {
      identifier = Self.identifierPrefix + name
      self.partials = partials
      self.finished = finished
    }

    /// Connects to what the system does for us, whoever asked for it.
    private func connected() -> URLSession {
      session.withLock { session in
        if let session { return session }
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        configuration.sessionSendsLaunchEvents = true
        let made = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
        session = made
        return made
      }
    }

    /// The system lets go of us, and ends what it does; what it has brought stays. Another session of the name may be
    /// made afterwards.
    func stop() {
      session.withLock { session in
        defer { session = nil }
        return session
      }?.invalidateAndCancel()
    }

    func takeEvents(_ handled: @escaping @Sendable () -> Void) {
      eventsHandled.withLock { $0 = handled }
      _ = connected()
    }

    /// Fetches a blob from that offset on.
    func fetch(_ request: URLRequest, _ blob: BlobID, from offset: UInt64) {
      let task = connected().downloadTask(with: request)
      task.taskDescription = "\(blob.text) \(offset)"
      task.resume()
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
      let parts = downloadTask.taskDescription?.split(separator: " ") ?? []
      guard parts.count == 2, let blob = BlobID(text: String(parts[0])), let offset = UInt64(parts[1]),
        let status = (downloadTask.response as? HTTPURLResponse)?.statusCode, status == (offset == 0 ? 200 : 206)
      else { return }
      // What cannot be moved is fetched again by the ordinary transfer.
      do { try partials.leave(location, of: blob, from: offset) } catch { return }
      finished()
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
      let handled = eventsHandled.withLock { handled in
        defer { handled = nil }
        return handled
      }
      if let handled { DispatchQueue.main.async(execute: handled) }
    }
  }
#endif
