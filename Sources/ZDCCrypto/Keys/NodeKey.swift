internal import Crypto
package import ZDCProtocol

extension SecretKey where Role == NodeKeyRole {
  /// `CK = D(NK, "content-capability")`: access to this node without its children.
  package var contentCapability: ContentCapability { derive("content-capability") }

  /// Opens and seals the children's `parentWrap`.
  package var childKey: ChildKey { derive("children") }

  /// Opens and seals the node's own `historyWrap`.
  package var historyKey: HistoryKey { derive("history") }

  /// Computes the tags of the children's names.
  package var nameKey: NameKey { derive("names") }

  /// The commitments to this key that the zone's access list and root record publish.
  package var commitments: NodeRecord.ZoneCommitments {
    NodeRecord.ZoneCommitments(
      node: keyCommitment(derive("nk-commit", as: NodeKey.self)), content: contentCapability.commitment)
  }
}

extension SecretKey where Role == ContentCapabilityRole {
  /// Opens and seals the private part of the node's record.
  package var recordKey: RecordKey { derive("record") }

  /// `D(CK, "ck-commit")`.
  package var commitment: KeyCommitment {
    keyCommitment(derive("ck-commit", as: ContentCapability.self))
  }
}

private func keyCommitment<Role>(_ key: SecretKey<Role>) -> KeyCommitment {
  KeyCommitment(key.exportBytes()) ?? .zero
}

/// The keys that one generation of a parent's key gives to its children. Derive them once and pass them for each child.
package struct ParentKeys: Sendable, Equatable {
  package let keyGen: UInt32
  let childKey: ChildKey
  let nameKey: NameKey

  package init(_ key: NodeKey, keyGen: UInt32) {
    self.keyGen = keyGen
    childKey = key.childKey
    nameKey = key.nameKey
  }

  /// Returns `nameTag(child)` over a name that is already folded (PROTOCOL 3.5).
  package func nameTag(_ name: FoldedName) -> NameTag { nameTag(folded: name.utf8) }

  /// Returns the name tag over stored bytes. A reader never folds again.
  package func nameTag(folded bytes: [UInt8]) -> NameTag {
    let tag = KeyDerivation.authenticate(nameKey.symmetric, labelPrefix("name") + bytes)
    return NameTag(tag.prefix(16)) ?? .zero
  }

  /// Returns the `parentWrap` of a child.
  func wrap(
    _ key: NodeKey, tree: TreeID, node: NodeID, keyGen: UInt32, random: inout some RandomSource
  ) throws(CryptoFailure) -> [UInt8] {
    let context = wrapContext(tree: tree, node: node, keyGen: keyGen)
    return try Seal.seal(key: childKey, label: "child-key", context: context, key.exportBytes(), random: &random)
  }

  /// Opens the `parentWrap` of a child. The seal commits to key and context, so it has at most one valid opening.
  func unwrap(_ wrap: [UInt8], tree: TreeID, node: NodeID, keyGen: UInt32) throws(ZDCSecurityError) -> NodeKey {
    let context = wrapContext(tree: tree, node: node, keyGen: keyGen)
    do throws(ZDCSecurityError) {
      let bytes = try Seal.open(key: childKey, label: "child-key", context: context, wrap)
      if let key = NodeKey(bytes) { return key }
    } catch {}
    throw ZDCSecurityError(.recordAuthFailed, node: node)
  }

  private func wrapContext(tree: TreeID, node: NodeID, keyGen: UInt32) -> [UInt8] {
    var context = ByteWriter(capacity: 56)
    context.append(tree)
    context.append(node)
    context.append(keyGen)
    context.append(self.keyGen)
    return context.bytes
  }
}
