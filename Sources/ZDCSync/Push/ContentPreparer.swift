internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers

/// Turns the app's answer into content that can be committed. Small content is sealed in memory; large content is sent
/// in parts.
struct ContentPreparer: Sendable {
  package let session: SyncSession
  package let zone: ZoneID

  /// Seals small content that is available immediately. Returns nil if the content is large or not available yet.
  func prepareAtOnce(_ answer: ContentAnswer) throws -> SuppliedContent? {
    guard let source = try answer.data.immediateSource(), let metadata = try bytesAtHand(answer.metadata),
      let thumbnail = try bytesAtHand(answer.thumbnail)
    else { return nil }
    let total = source.size + UInt64(metadata.count) + UInt64(thumbnail.count)
    guard total <= UInt64(Limits.inlineContentBytes) else { return nil }
    return try seal(try source.readAll(), metadata: metadata, thumbnail: thumbnail)
  }

  private func bytesAtHand(_ data: ZDCData?) throws -> [UInt8]? {
    guard let data else { return [] }
    guard let source = try data.immediateSource(), source.size <= UInt64(Limits.inlineContentBytes) else { return nil }
    return try source.readAll()
  }

  /// Returns nil if padding makes the content too large to inline in the commit.
  private func seal(_ data: [UInt8], metadata: [UInt8], thumbnail: [UInt8]) throws -> SuppliedContent? {
    let sealed = try ContentSealer.sealSmall(metadata: metadata, thumbnail: thumbnail, data: data)
    return sealed.isInline ? .inline(sealed) : nil
  }

  /// The available data of an app's answer.
  package struct Sources: Sendable {
    package var data: ContentSource
    package var metadata: [UInt8]
    package var thumbnail: [UInt8]
  }

  /// Waits for the data that the app has promised.
  package func sources(of answer: ContentAnswer) async throws -> Sources {
    Sources(
      data: try await answer.data.source(), metadata: try await section(answer.metadata, limit: Limits.metadataBytes),
      thumbnail: try await section(answer.thumbnail, limit: Limits.thumbnailBytes))
  }

  /// Seals and sends the content. Runs outside of any transaction.
  ///
  /// A source that changes while it is being read is read again with a fresh key (SECURITY B9).
  package func prepare(
    _ sources: Sources, of answer: ContentAnswer, progress: @escaping @Sendable (UInt64, UInt64) -> Void
  ) async throws -> SuppliedContent {
    let (source, metadata, thumbnail) = (sources.data, sources.metadata, sources.thumbnail)
    let journal = UploadJournal(session: session, tree: zone.tree, node: answer.nodeID)
    let upload = ContentUpload(
      api: session.api, journal: journal, handOver: session.handOver, slots: session.uploadSlots, progress: progress)
    if source.size <= UInt64(Limits.inlineContentBytes) {
      let bytes = try source.readAll()
      if let small = try seal(bytes, metadata: metadata, thumbnail: thumbnail) { return small }
    }
    return try await upload.send(source, metadata: metadata, thumbnail: thumbnail)
  }

  private func section(_ data: ZDCData?, limit: Int) async throws -> [UInt8] {
    guard let data else { return [] }
    let source = try await data.source()
    guard source.size <= UInt64(limit) else { throw ZDCError(.sectionTooLarge) }
    return try source.readAll()
  }
}
