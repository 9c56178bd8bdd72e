internal import ZDCClientAPI

#if canImport(Darwin) && !os(macOS)
  internal import Foundation
  internal import ZDCClientAPI
  internal import ZDCProtocol

  extension ZDCDownloadManager {
    /// - Returns: false if the session is not the framework's.
    package func takeEvents(ofSession identifier: String, _ handled: @escaping @Sendable () -> Void) -> Bool {
      guard system.identifier == identifier else { return false }
      system.takeEvents(handled)
      return true
    }

    /// Hands the large downloads of this process over to the system.
    package func handOver() async throws {
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
