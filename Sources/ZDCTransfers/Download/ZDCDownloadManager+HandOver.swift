internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

// Downloads that the system continues while the app is suspended.

extension ZDCDownloadManager {
  /// The size of a range of large content, and so the maximum that is lost if the system is stopped.
  static let rangeBytes: UInt64 = 64 << 20

  // MARK: Handing over

  /// Hands over the downloads of this process that outlive it, as many as the system may hold, in order of request.
  package func handOverDownloads() async throws {
    for (target, part) in try await savedTargets() {
      let api = try await users.serverAPI(for: target.user)
      for transfer in try await transfers(of: target, part, api) {
        guard try await handOver.download(transfer) else { return }
      }
    }
  }

  private func savedTargets() async throws -> [(ContentTarget, DownloadKey.Part)] {
    try await database.asyncRead { [background] transaction in
      try transaction.downloads.downloads(of: background.owner).compactMap { saved in
        do {
          return (try transaction.contentTarget(nodeUUID: saved.key.nodeID), saved.key.part)
        } catch let error as ZDCError where error.code != .corruptDatabase {
          // Its node is gone, or has no content: the next launch ends the download.
          return nil
        }
      }
    }
  }

  private func transfers(
    of target: ContentTarget, _ part: DownloadKey.Part, _ api: ServerAPI
  ) async throws -> [SystemTransfer] {
    let plan = HandOverPlan(target, part)
    let begin = plan.isResumable ? try partials.size(target.blob) : 0
    let left = try partials.left(of: target.blob).map(\.range)
    var transfers: [SystemTransfer] = []
    for range in plan.ranges(from: begin, without: left).prefix(TransferHandOver.mostTransfers) {
      transfers.append(
        try await api.systemContent(
          target.zone, node: target.node, blob: target.blob, range: range, cipherLength: target.cipherLength))
    }
    if let leaves = plan.proof, try partials.proof(of: target.blob, leaves: leaves) == nil {
      transfers.append(
        try await api.systemProof(target.zone, node: target.node, blob: target.blob, leaves: leaves))
    }
    return transfers
  }

  // MARK: Taking over

  /// Returns a verified file of content that the system has fetched whole, or nil.
  func handedOverFile(_ target: ContentTarget, _ url: URL) async throws -> ZDCCryptoFile? {
    guard !HandOverPlan(target, .data).isResumable, handOver.isPossible else { return nil }
    try await handOver.enter(.blob(target.blob))
    let whole = 0..<target.cipherLength
    guard let bytes = try partials.bytes(of: target.blob, whole) else { return nil }
    defer { removeLeft(target.blob) { $0 == whole } }
    do {
      return try Self.store(bytes, target, url)
    } catch is ZDCSecurityError {
      // Not evidence against the server: the file may have been damaged on this device. The network has the bytes.
      return nil
    }
  }

  /// Returns verified sections of content that the system has fetched, or nil unless it has fetched all of them.
  func handedOverSections(_ wanted: [ContentSection], _ target: ContentTarget) async throws -> Sections? {
    guard handOver.isPossible else { return nil }
    try await handOver.enter(.blob(target.blob))
    do {
      return target.isSmall ? try openWhole(wanted, target) : try openRanges(wanted, target)
    } catch is ZDCSecurityError { return nil }
  }

  private func openWhole(_ wanted: [ContentSection], _ target: ContentTarget) throws -> Sections? {
    let whole = 0..<target.cipherLength
    guard let bytes = try partials.bytes(of: target.blob, whole) else { return nil }
    defer { removeLeft(target.blob) { $0 == whole } }
    let opened = try ContentOpener.openSmall(bytes, target.reference)
    return [.metadata: opened.metadata, .thumbnail: opened.thumbnail].filter { wanted.contains($0.key) }
  }

  private func openRanges(_ wanted: [ContentSection], _ target: ContentTarget) throws -> Sections? {
    var reader = ContentReader(target.reference)
    let plan = reader.plan(wanted)
    var fetched: [[UInt8]] = []
    for range in plan.fetches {
      guard let bytes = try partials.bytes(of: target.blob, range) else { return nil }
      fetched.append(bytes)
    }
    let proof = plan.needsProof(target.reference.layout) ? try partials.proof(of: target.blob, leaves: plan.leaves) : []
    guard let proof else { return nil }
    defer {
      removeLeft(target.blob) { plan.fetches.contains($0) }
      partials.removeProof(of: target.blob, leaves: plan.leaves)
    }
    let opened = try reader.read(plan, fetched: fetched, proof: proof)
    return Dictionary(uniqueKeysWithValues: wanted.map { ($0, Array(reader.section($0, in: opened, of: plan))) })
  }

  private func removeLeft(_ blob: BlobID, where isOver: (Range<UInt64>) -> Bool) {
    // Files that stay are removed after a week.
    do { try partials.removeLeft(of: blob, where: isOver) } catch { database.context.logFailure(error) }
  }
}

/// The requests that fetch a part of content. Pure.
struct HandOverPlan {
  /// Whether the system fetches large content in ranges, each of which is kept when it has arrived.
  let isResumable: Bool
  /// The leaves that need a proof; nil if all leaves are fetched.
  let proof: Range<UInt64>?
  private let fetches: [Range<UInt64>]

  init(_ target: ContentTarget, _ part: DownloadKey.Part) {
    let layout = target.reference.layout
    let whole = 0..<target.cipherLength
    switch part {
    case .data:
      (fetches, proof) = ([whole], nil)
      isResumable = layout.leafCount > ContentFetch.resumableLeaves
    case .meta(let components):
      let wanted = target.sections(of: components)
      let plan = ContentReader(target.reference).plan(wanted)
      let isWhole = target.isSmall && !wanted.isEmpty
      fetches = isWhole ? [whole] : plan.fetches
      proof = !isWhole && plan.needsProof(layout) ? plan.leaves : nil
      isResumable = false
    }
  }

  /// - Parameters:
  ///   - begin: the number of bytes of large content that this process has.
  ///   - left: the ranges that the system has fetched before.
  func ranges(from begin: UInt64, without left: [Range<UInt64>]) -> [Range<UInt64>] {
    var ranges = fetches
    if isResumable, let whole = fetches.first {
      let bounds = stride(from: begin, to: whole.upperBound, by: Int(ZDCDownloadManager.rangeBytes))
      ranges = bounds.map { $0..<min($0 + ZDCDownloadManager.rangeBytes, whole.upperBound) }
    }
    return ranges.filter { range in !left.contains { range.clamped(to: $0) == range } }
  }
}
