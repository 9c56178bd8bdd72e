internal import Crypto
public import ZDCProtocol

extension SecretKey where Role == NodeKeyRole {
  /// `CK = D(NK, "content-capability")`: this node without its children.
  public var contentCapability: ContentCapability { derive("content-capability") }

  /// Opens and seals the children's `parentWrap`.
  public var childKey: ChildKey { derive("children") }

  /// Opens and seals the node's own `historyWrap`.
  public var historyKey: HistoryKey { derive("history") }

  /// Makes the tags of the children's names.
  public var nameKey: NameKey { derive("names") }

  /// What the access list and the root record of a zone publish about this key.
  public var commitments: NodeRecord.ZoneCommitments {
    NodeRecord.ZoneCommitments(
      node: keyCommitment(derive("nk-commit", as: NodeKey.self)), content: contentCapability.commitment)
  }
}

extension SecretKey where Role == ContentCapabilityRole {
  /// Opens and seals the private part of the node's record.
  public var recordKey: RecordKey { derive("record") }

  /// `D(CK, "ck-commit")`.
  public var commitment: KeyCommitment {
    keyCommitment(derive("ck-commit", as: ContentCapability.self))
  }
}

private func keyCommitment<Role>(_ key: SecretKey<Role>) -> KeyCommitment {
  KeyCommitment(key.exportBytes()) ?? .zero
}

/// What a parent's key of one generation gives to its children. Derive it once and pass it for each of them.
public struct ParentKeys: Sendable, Equatable {
  public let keyGen: UInt32
  let childKey: ChildKey
  let nameKey: NameKey

  public init(_ key: NodeKey, keyGen: UInt32) {
    self.keyGen = keyGen
    childKey = key.childKey
    nameKey = key.nameKey
  }

  /// `nameTag(child)` over a name that is already folded (PROTOCOL 3.5).
  public func nameTag(_ name: FoldedName) -> NameTag { nameTag(folded: name.utf8) }

  /// Over stored bytes: a reader never folds again.
  public func nameTag(folded bytes: [UInt8]) -> NameTag {
    let tag = KeyDerivation.authenticate(nameKey.symmetric, labelPrefix("name") + bytes)
    return NameTag(tag.prefix(16)) ?? .zero
  }

  /// `parentWrap` of a child.
  func wrap(
    _ key: NodeKey, tree: TreeID, node: NodeID, keyGen: UInt32, random: inout some RandomSource
  ) throws(CryptoFailure) -> [UInt8] {
    let context = wrapContext(tree: tree, node: node, keyGen: keyGen)
    return try Seal.seal(key: childKey, label: "child-key", context: context, key.exportBytes(), random: &random)
  }

  /// Opens the `parentWrap` of a child. The seal commits to key and context, so there is one opening at most.
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
