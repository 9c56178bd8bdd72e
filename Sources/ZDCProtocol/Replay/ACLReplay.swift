/// The rules for changes to access lists (PROTOCOL 3.9).
package enum ACLReplay {
  /// Verifies a list against the previous one, which is nil for a zone's first list.
  ///
  /// - Throws: `ZDCSecurityError` with the broken rule, or any error of `identities`.
  package static func verify(
    _ acl: ZoneACL, after previous: ZoneACL?, identities: some IdentityDirectory
  ) throws {
    let fields = acl.fields
    try checkBinding(fields)
    if let previous {
      try checkStep(fields, after: previous)
      try checkRights(fields, after: previous.fields)
    } else {
      try checkGenesis(fields)
    }
    try acl.checkSigner(identities)
  }

  private static func checkBinding(_ fields: ZoneACL.Fields) throws(ZDCSecurityError) {
    let tree = TreeID.derive(owner: fields.owner, trunk: fields.trunk, appTreeID: fields.appTreeID)
    try require(tree == fields.zone.tree, .recordBindingMismatch)
    // Z2: the owner always has the key, through their own wrap, and all permissions.
    guard let owner = fields.entry(for: fields.owner) else { throw ZDCSecurityError(.aclOwnerImmutable) }
    let isComplete = owner.wrapKind == .nodeKey && owner.permissions.isSuperset(of: [.read, .write, .share])
    try require(isComplete, .aclOwnerImmutable)
  }

  private static func checkGenesis(_ fields: ZoneACL.Fields) throws(ZDCSecurityError) {
    try require(fields.version == 1 && fields.prev == .zero, .aclRollback)
    try require(fields.zoneKeyGen == 1 || fields.zone != ZoneID(trunkOf: fields.zone.tree), .staleKeyGeneration)
    try require(fields.writer == fields.owner, .aclNotAuthorized)
  }

  private static func checkStep(_ fields: ZoneACL.Fields, after previous: ZoneACL) throws(ZDCSecurityError) {
    let old = previous.fields
    let isNext = old.version < .max && fields.version == old.version + 1 && fields.prev == previous.hash
    try require(isNext, .aclRollback)
    let isSameZone =
      fields.zone == old.zone && fields.owner == old.owner && fields.trunk == old.trunk
      && fields.appTreeID == old.appTreeID
    try require(isSameZone, .recordBindingMismatch)
    try require(fields.minProtocol >= old.minProtocol, .unsupportedVersion)
    let isSameKey =
      fields.zoneKeyGen == old.zoneKeyGen && fields.commitments == old.commitments
      && fields.historyWrap == old.historyWrap
    let isNextKey = old.zoneKeyGen < .max && fields.zoneKeyGen == old.zoneKeyGen + 1
    try require(isSameKey || isNextKey, .staleKeyGeneration)
  }

  /// Checks that the writer has `s` in the list *before* and grants no permission that they lack. The owner's
  /// permissions never change.
  private static func checkRights(_ fields: ZoneACL.Fields, after old: ZoneACL.Fields) throws(ZDCSecurityError) {
    guard let owner = fields.entry(for: fields.owner), let oldOwner = old.entry(for: old.owner) else {
      throw ZDCSecurityError(.aclOwnerImmutable)
    }
    try require(owner.permissions == oldOwner.permissions, .aclOwnerImmutable)
    if fields.writer == fields.owner { return }
    // Other members may change the owner's wrap only with a new key. Garbage in it locks out the owner's next device.
    let isKept = owner == oldOwner || fields.zoneKeyGen != old.zoneKeyGen && owner.encGen >= oldOwner.encGen
    try require(isKept, .aclOwnerImmutable)
    guard let writer = old.entry(for: fields.writer) else { throw ZDCSecurityError(.aclNotAuthorized) }
    if isSelfRemoval(fields, after: old) { return }
    try require(writer.permissions.contains(.share), .aclNotAuthorized)
    var before = old.entries[...]
    for entry in fields.entries {
      // Both lists ascend by user.
      before = before.drop { $0.user < entry.user }
      if let first = before.first, first.user == entry.user, first.permissions == entry.permissions { continue }
      try require(writer.permissions.mayGive(entry.permissions), .aclNotAuthorized, node: nil)
    }
  }

  /// R4: the writer's own entry is removed and nothing else differs.
  private static func isSelfRemoval(_ fields: ZoneACL.Fields, after old: ZoneACL.Fields) -> Bool {
    fields.zoneKeyGen == old.zoneKeyGen && fields.parentLinked == old.parentLinked
      && fields.entries == old.entries.filter { $0.user != fields.writer }
  }
}

extension ZoneACL {
  /// Checks the signature with the writer's key.
  ///
  /// - Throws: `writerUnknown` without that key, `aclSignatureInvalid`, or any error of `identities`.
  package func checkSigner(_ identities: some IdentityDirectory) throws {
    guard let key = try identities.signKey(user: fields.writer, generation: fields.writerGen) else {
      throw ZDCSecurityError(.writerUnknown, zone: fields.zone, user: fields.writer)
    }
    let isValid = Signatures.isValid(signature, by: key, label: "acl", message: signedBytes)
    try require(isValid, .aclSignatureInvalid)
  }
}
