#if canImport(Darwin) && !os(macOS)
  public import Foundation
  internal import ZDCProtocol

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
      guard let system = managers?.downloads.system, system.identifier == identifier else { return false }
      system.takeEvents(completionHandler)
      return true
    }
  }

  extension ZDCDownloadManager {
    func handOver() async throws {
      let saved = try await database.asyncRead { [background] in try $0.downloads.downloads(of: background.owner) }
      for download in saved where download.key.part == .data {
        let target = try await database.asyncRead { try $0.contentTarget(nodeUUID: download.key.nodeID) }
        let api = try await users.serverAPI(for: target.user)
        guard ContentFetch(api: api, target: target).isResumable else { continue }
        let offset = try partials.size(target.blob)
        guard offset < target.cipherLength, let request = try await api.systemRequest(target, from: offset) else {
          continue
        }
        system.fetch(request, target.blob, from: offset)
      }
    }
  }

  extension ServerAPI {
    fileprivate func systemRequest(_ target: ContentTarget, from offset: UInt64) async throws -> URLRequest? {
      let path = Routes.path(Routes.content, target.zone.tree.text, target.node.text, target.blob.text)
      guard let url = URL(string: connection.origin + path) else { return nil }
      var request = URLRequest(url: url)
      request.setValue("Bearer \(try await session.currentToken())", forHTTPHeaderField: "Authorization")
      if offset > 0 { request.setValue("bytes=\(offset)-", forHTTPHeaderField: "Range") }
      return request
    }
  }
#endif
