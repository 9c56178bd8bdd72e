internal import Foundation
internal import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport
package import ZDCTreesystem

/// Content to fetch: its location, and what its verified record says about it.
package struct ContentTarget: Sendable {
  package let user: UserID
  package let zone: ZoneID
  package let node: NodeID
  package let reference: ContentReference
  /// When the server received this version, by its clock, in milliseconds.
  package let receivedMs: UInt64

  package init(user: UserID, zone: ZoneID, node: NodeID, reference: ContentReference, receivedMs: UInt64) {
    self.user = user
    self.zone = zone
    self.node = node
    self.reference = reference
    self.receivedMs = receivedMs
  }

  package var blob: BlobID { reference.content.blobID }
  package var cipherLength: UInt64 { reference.layout.cipherLength }
  var isSmall: Bool { cipherLength <= UInt64(Limits.inlineContentBytes) }

  package var key: TransferKey { TransferKey(user: user, tree: zone.tree, blob: blob) }

  package var info: ZDCCloudDataInfo {
    let secrets = reference.secrets
    return ZDCCloudDataInfo(
      dataSize: secrets.sizes.data, metadataSize: UInt64(secrets.sizes.metadata),
      thumbnailSize: UInt64(secrets.sizes.thumbnail),
      thumbnailTag: secrets.thumbnailTag == .zero ? nil : secrets.thumbnailTag.text, eTag: reference.content.eTag,
      lastModified: receivedMs == 0 ? nil : Date(timeIntervalSince1970: Double(receivedMs) / 1_000))
  }
}

extension ZDCDownloadManager {
  /// Returns the download target for a node that the caller holds.
  ///
  /// - Parameter seen: the version in the caller's node. If the database has another one, an uncommitted transaction
  ///   may have shown the node to the caller. Then this method waits for that transaction and looks again.
  /// - Throws: as `contentTarget(nodeUUID:)`.
  package func target(_ nodeID: String, seen: String?) async throws -> ContentTarget {
    do {
      let target = try await storedTarget(nodeID)
      if target.shows(seen) { return target }
    } catch let error as ZDCError where error.code == .nodeNotFound || (seen != nil && error.code != .corruptDatabase) {
    }
    await writerBarrier.pass(database)
    return try await storedTarget(nodeID)
  }

  private func storedTarget(_ nodeID: String) async throws -> ContentTarget {
    try await database.asyncRead { try $0.contentTarget(nodeUUID: nodeID) }
  }
}

extension ContentTarget {
  /// Whether this is the version that the caller has seen; nil matches any version.
  package func shows(_ eTag: String?) -> Bool { eTag.map { $0 == reference.content.eTag } ?? true }
}

extension ZDCReadTransaction {
  /// Returns the download target for a node.
  ///
  /// - Throws: ``ZDCError`` with `nodeNotFound`, `nodeNotUploaded` or `noContent`.
  package func contentTarget(nodeUUID: String) throws -> ContentTarget {
    guard let row = try nodes.node(uuid: nodeUUID) else { throw ZDCError(.nodeNotFound) }
    guard let content = row.content else {
      throw ZDCError(row.isUploaded ? .noContent : .nodeNotUploaded)
    }
    // A node that moves from another zone has its content there until its copy is in the cloud.
    let copy = try row.isUploaded ? nil : moves.copy(row: row.id)
    let place = try cached { ContentPlaces() }.place(ofZone: copy?.zone ?? row.zone, in: self)
    return ContentTarget(
      user: place.user, zone: place.zone, node: copy?.node ?? row.nodeID,
      reference: try ContentReference(content: content.content, secrets: content.secrets),
      receivedMs: content.receivedMs)
  }
}

/// Caches the owners of zones by row, so that ten thousand nodes of a zone need only one look-up.
private final class ContentPlaces {
  private var places: [Int64: (user: UserID, zone: ZoneID)] = [:]

  func place(ofZone id: Int64, in transaction: ZDCReadTransaction) throws -> (user: UserID, zone: ZoneID) {
    if let known = places[id] { return known }
    guard let zone = try transaction.zones.zone(id: id),
      let owner = try transaction.localUsers.user(id: zone.localUser)
    else { throw ZDCError(.corruptDatabase) }
    places[id] = (owner.userID, zone.zone)
    return (owner.userID, zone.zone)
  }
}
