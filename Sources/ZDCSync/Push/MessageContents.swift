internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers

/// The contents of messages that are about to be delivered.
struct MessageContents: Sendable {
  let session: SyncSession
  let zone: Int64

  /// A message's content, or why it cannot be sent.
  enum Content: Sendable {
    case payload([UInt8], MessageBody.Kind, profileVersion: UInt64? = nil)
    /// Something of the server is missing or does not open. It is tried again after a pause.
    case unavailable(ZDCSecurityError.Code)
    /// The app has no content that can be sent.
    case noData
  }

  func content(of operation: OperationRow) async throws -> Content {
    if let node = operation.node { return try await content(of: node) }
    if operation.isBurn { return .payload(operation.changeset ?? [], .burn) }
    let own = try await session.database.asyncRead { [session] transaction in
      try transaction.profiles.profile(of: session.user, localUser: session.localUser, tree: session.appTreeID)
    }
    return own.map { Content.payload($0.profile.bytes, .profile, profileVersion: $0.version) } ?? .noData
  }

  /// A message's content is that of the copy in the outbox. Only for a signal, which has none, the app is asked. Content
  /// that is too large for an envelope stays in the outbox, where the recipients may read it.
  private func content(of node: Int64) async throws -> Content {
    let row = try await session.database.asyncRead { try $0.nodes.node(id: node) }
    guard let row else { return .noData }
    do {
      guard row.isUploaded else { return .payload(try await signal(row), .signal) }
      guard let content = row.content else { throw ZDCError(.noDataFromApp) }
      guard content.secrets.sizes.data <= UInt64(Limits.messageBytes) else {
        let attachment = try MessageAttachment(.init(content.content), secrets: content.secrets)
        return .payload(attachment.payload, .attached)
      }
      return .payload(try await copy(row, content), .message)
    } catch let error as ZDCSecurityError {
      session.events.report(error)
      return .unavailable(error.code)
    } catch let error as ServerError where row.isUploaded {
      guard [.notFound, .gone, .blobGone].contains(error.code) else { throw error }
      session.events.report(error)
      return .unavailable(.objectMissing)
    } catch let error where !(error is CancellationError || error is TransportError) {
      session.events.report(error)
      return .noData
    }
  }

  private func copy(_ row: NodeRow, _ content: NodeRow.RemoteContent) async throws -> [UInt8] {
    let zoneID = try await session.database.asyncRead { [zone] in try $0.zones.zone(id: zone)?.zone }
    guard let zoneID else { throw ZDCError(.corruptDatabase) }
    let reference = try ContentReference(content: content.content, secrets: content.secrets)
    let (_, body) = try await session.api.content(zoneID, node: row.nodeID, blob: content.content.blobID)
    var bytes: [UInt8] = []
    for try await slice in body {
      bytes += slice
      guard UInt64(bytes.count) <= content.content.cipherLength else { throw ZDCSecurityError(.contentTrailingData) }
    }
    return try ContentOpener.openSmall(bytes, reference).data
  }

  private func signal(_ row: NodeRow) async throws -> [UInt8] {
    let data = try await session.database.asyncRead { [session] transaction in
      try transaction.cloudState.asking(for: row.unused?.recipients ?? []) {
        try session.delegate().data(forMessage: try session.node(row, in: transaction), transaction: transaction)
      }
    }
    guard let source = try data?.immediateSource() else { throw ZDCError(.noDataFromApp) }
    guard source.size <= UInt64(Limits.messageBytes) else { throw ZDCError(.sectionTooLarge) }
    return try source.readAll()
  }
}
