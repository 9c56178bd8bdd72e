package import ZDCCrypto
package import ZDCProtocol
package import ZeroDarkCloud

/// A rotation of a zone's key, in the form that the zone's owner commits after a removal (PROTOCOL 3.10).
package struct ZoneRotation: Sendable {
  package let commit: ZoneCommit
  package let acl: ZoneACL
  package let grant: Grant
  /// The grants of other members.
  package var others: [Grant] = []
  package let root: NodeRecord
  package let key: NodeKey

  /// A member other than the owner.
  package struct Member: Sendable {
    package var user: UserID
    package var encPub: [UInt8]
    /// The key inside the grant; nil for the zone's.
    package var granted: NodeKey?

    package init(user: UserID, encPub: [UInt8], granted: NodeKey? = nil) {
      (self.user, self.encPub, self.granted) = (user, encPub, granted)
    }
  }
}

extension RogueZone {
  /// Creates a rotation: a list with the next zoneKeyGen and the old keys sealed under a fresh key, and the root under
  /// that key.
  ///
  /// - Parameters:
  ///   - encPub: The owner's current encryption key.
  ///   - granted: The key inside the owner's grant, if it is not to be the zone's.
  ///   - members: The other members that get a grant.
  ///   - writer: The keys of the user who signs the rotation; nil for the owner's.
  package func rotation(
    encPub: [UInt8], granting granted: NodeKey? = nil, members: [ZoneRotation.Member] = [], by writer: UserKeys? = nil,
    spoil: (inout NodeRecord.Fields) -> Void = { _ in }
  ) throws -> ZoneRotation {
    let writer = writer ?? keys
    guard let entry = acl.fields.entry(for: keys.userID) else { throw TestFailure("the owner is not in the list") }
    let (key, keyGen) = (NodeKey.random(), acl.fields.zoneKeyGen + 1)
    let grant = try GrantSealer(zone: zone, zoneKeyGen: keyGen, key: granted ?? key)
      .seal(for: keys.userID, encGen: entry.encGen, encPub: encPub)
    let others = try members.map { member in
      try GrantSealer(zone: zone, zoneKeyGen: keyGen, key: member.granted ?? key)
        .seal(for: member.user, encGen: acl.fields.entry(for: member.user)?.encGen ?? 1, encPub: member.encPub)
    }
    let history = try KeyHistory(of: acl.fields, key: root.key)
      .adding(KeyHistory.Entry(keyGen: root.record.fields.keyGen, key: root.key))
    let wrap = try history.seal(tree: zone.tree, node: zone.root, key: key, keyGen: keyGen)
    let list = try nextACL(signedBy: writer.signingKey) { fields in
      (fields.writer, fields.writerGen) = (writer.userID, writer.signGen)
      fields.zoneKeyGen = keyGen
      fields.commitments = key.commitments
      fields.historyWrap = wrap
      for grant in [grant] + others {
        for index in fields.entries.indices where fields.entries[index].user == grant.user {
          fields.entries[index].wrapHash = grant.wrapHash
        }
      }
    }
    let record = Self.record(try RecordSealer.seal(try rootDraft(key: key, keyGen: keyGen, writer)), spoil)
    let operations: [ZoneOperation] = [
      .acl(version: list.fields.version, hash: list.hash), .put(ZoneOperation.Put(record)),
    ]
    let commit = try commit(operations, signedBy: writer.signingKey) {
      ($0.aclHash, $0.writer, $0.writerGen) = (list.hash, writer.userID, writer.signGen)
    }
    return ZoneRotation(commit: commit, acl: list, grant: grant, others: others, root: record, key: key)
  }

  private func rootDraft(key: NodeKey, keyGen: UInt32, _ writer: UserKeys) throws -> RecordDraft {
    var draft = try draft(next: "")
    (draft.parent, draft.parentLink, draft.isZoneRoot) = (.zero, .none, true)
    (draft.key, draft.keyGen, draft.historyWrap) = (key, keyGen, [])
    (draft.writer, draft.writerGen) = (writer.userID, writer.signGen)
    return draft
  }
}

extension RogueWriter {
  /// Rotates the home zone's key, as its owner would.
  package func rotateHome(
    granting key: NodeKey? = nil, spoil: (inout NodeRecord.Fields) -> Void = { _ in }
  ) async throws {
    try await push(try await home().rotation(encPub: try await encPub(), granting: key, spoil: spoil))
  }

  package func push(_ rotation: ZoneRotation) async throws {
    try await push(rotation.commit, [rotation.root], acl: rotation.acl, grants: [rotation.grant] + rotation.others)
  }

  /// Returns the account's current encryption key.
  package func encPub() async throws -> [UInt8] {
    guard let link = try await chain().last else { throw TestFailure("the account has no chain") }
    return link.encPub
  }
}
