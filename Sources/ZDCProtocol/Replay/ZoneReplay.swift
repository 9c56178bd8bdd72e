/// The rules of a zone's log (PROTOCOL 3.7), shared by server and client. The server runs them to refuse early, the
/// client because it does not trust the server.
///
/// Pure: it accesses state and identities through protocols, and reads or writes nothing else.
package struct ZoneReplay<Identities: IdentityDirectory> {
  private let identities: Identities
  private let signatures: CommitSignatures

  /// - Parameter signatures: Signatures that are known to be valid.
  package init(identities: Identities, signatures: CommitSignatures = CommitSignatures()) {
    (self.identities, self.signatures) = (identities, signatures)
  }

  /// Verifies the next commit and applies it to `state`, for logs without splits.
  ///
  /// - Parameters:
  ///   - head: The head of the log; nil before the genesis commit.
  ///   - acl: The access list that the commit's acl operation names; nil without that operation.
  /// - Returns: The new head. Its access list is the one in force, and the only one that the caller stores.
  /// - Throws: `ZDCSecurityError` with the broken rule. The caller must then roll back `state`.
  package func apply(
    _ commit: ZoneCommit, acl: ZoneACL?, after head: ZoneHead?, to state: inout some ZoneState
  ) throws -> ZoneHead {
    guard commit.fields.genesisState == nil else {
      throw ZDCSecurityError(.unsupportedVersion, zone: commit.fields.zone)
    }
    return try advance(commit, acl: acl, after: head, to: &state).head
  }

  /// Verifies the next commit and applies it to `state`.
  ///
  /// - Parameters:
  ///   - head: The head of the log; nil before the genesis commit.
  ///   - acl: The access list that the commit's acl operation names; nil without that operation.
  ///   - list: The state with which a genesis says that its zone begins.
  /// - Throws: `ZDCSecurityError` with the broken rule. The caller must then roll back `state`.
  package func advance(
    _ commit: ZoneCommit, acl: ZoneACL?, list: StateList? = nil, after head: ZoneHead?, to state: inout some ZoneState
  ) throws -> ZoneStep {
    do {
      try checkOrder(commit, after: head)
      let newACL = try checkACL(commit, acl, after: head)
      try checkSignature(commit, after: head)
      let next = ZoneHead(
        zone: commit.fields.zone, seq: commit.fields.seq, hash: commit.hash, acl: newACL,
        retiredBelow: head?.retiredBelow ?? [:])
      // The list before the commit determines the rights. A genesis has only its own list, signed by the owner.
      let rights = ZoneRights(before: head?.acl ?? newACL, after: newACL, writer: commit.fields.writer)
      var shape = ZoneShape(commit.fields, isGenesis: head == nil)
      var step = ZoneStep(head: next, permissions: rights.permissions)
      try state.begin(commit.fields)
      for operation in commit.fields.operations {
        try rights.check(operation, in: state)
        try apply(operation, of: commit, list: list, shape: &shape, state: &state, step: &step)
      }
      try shape.finish(acl: newACL, previous: head?.acl)
      step.head.isClosed = shape.isClosed
      return step
    } catch let error as ZDCSecurityError {
      throw error.with(zone: commit.fields.zone)
    }
  }

  private func checkOrder(_ commit: ZoneCommit, after head: ZoneHead?) throws(ZDCSecurityError) {
    if let head { try require(commit.fields.zone == head.zone, .recordBindingMismatch) }
    let follows = commit.follows(head.map { ($0.seq, $0.hash) }) && !(head?.isClosed ?? false)
    try require(follows, .commitChainBroken)
    try commit.fields.checkOrderOfOperations()
  }

  private func checkACL(_ commit: ZoneCommit, _ acl: ZoneACL?, after head: ZoneHead?) throws -> ZoneACL {
    let changes = commit.fields.operations.compactMap { operation in
      if case .acl(let version, let hash) = operation { (version, hash) } else { nil }
    }
    guard let (version, hash) = changes.first else {
      try require(acl == nil, .nonCanonicalEncoding)
      guard let current = head?.acl, current.hash == commit.fields.aclHash else {
        throw ZDCSecurityError(.aclRollback)
      }
      return current
    }
    guard changes.count == 1, let acl, acl.hash == hash else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    let isNamed =
      acl.fields.version == version && commit.fields.aclHash == hash && acl.fields.zone == commit.fields.zone
      && acl.fields.writer == commit.fields.writer && acl.fields.writerGen == commit.fields.writerGen
    try require(isNamed, .aclSignatureInvalid)
    try ACLReplay.verify(acl, after: head?.acl, identities: identities)
    return acl
  }

  private func checkSignature(_ commit: ZoneCommit, after head: ZoneHead?) throws {
    let retiredBelow = head?.retiredBelow[commit.fields.writer] ?? 0
    try require(commit.fields.writerGen >= retiredBelow, .writerNotAuthorized)
    try commit.checkSigner(identities, signatures)
  }

  private func apply(
    _ operation: ZoneOperation, of commit: ZoneCommit, list: StateList?, shape: inout ZoneShape,
    state: inout some ZoneState, step: inout ZoneStep
  ) throws {
    switch operation {
    case .put(let put): try shape.put(put, in: &state)
    case .delete(let node, let record, let count):
      try shape.delete(node, record: record, liveDescendants: count, in: &state)
    case .acl: break
    case .retireKey(let user, let gen): try retire(user, below: gen, in: &step.head)
    case .split(let node, let genesis, let count):
      step.split = ZoneSplit(
        zone: ZoneID(tree: commit.fields.zone.tree, root: node), genesis: genesis, parentHead: commit.fields.prev,
        list: try shape.split(node, count: count, in: &state))
    case .genesisState(let genesis): try shape.begin(genesis, list: list, in: &state)
    }
  }
}

extension ZoneReplay {
  /// Retires keys. Each retirement must change something, and must leave the user the newest key of their chain.
  private func retire(_ user: UserID, below gen: UInt32, in next: inout ZoneHead) throws {
    try require(gen > max(1, next.retiredBelow[user] ?? 0), .writerNotAuthorized)
    guard try identities.signKey(user: user, generation: gen) != nil else {
      throw ZDCSecurityError(.writerUnknown, user: user)
    }
    next.retiredBelow[user] = gen
  }
}

extension ZoneCommit {
  /// The keys that the commit's replay needs: that of its writer, and those that it retires.
  package var signers: Set<Signer> { Set([signer] + retiredSigners) }

  var signer: Signer { Signer(user: fields.writer, generation: fields.writerGen) }

  var retiredSigners: [Signer] {
    var signers: [Signer] = []
    for case .retireKey(let user, let generation) in fields.operations {
      signers.append(Signer(user: user, generation: generation))
    }
    return signers
  }

  /// Returns whether this commit directly follows the commit with this number and hash; for nil, whether it opens the
  /// log.
  package func follows(_ head: (seq: UInt64, hash: CommitHash)?) -> Bool {
    guard let head else {
      let parentHead = fields.genesisState?.parentHead ?? .zero
      return fields.seq == 0 && fields.prev == Self.genesisPrev(zone: fields.zone, parentHead: parentHead)
    }
    return head.seq < .max && fields.seq == head.seq + 1 && fields.prev == head.hash
  }

  /// Verifies that the named writer signed the commit. The writer's permissions are not checked.
  ///
  /// - Parameter known: Signatures that are known to be valid.
  /// - Throws: `ZDCSecurityError` with `writerUnknown` or `signatureInvalid`.
  package func checkSigner(
    _ identities: some IdentityDirectory, _ known: CommitSignatures = CommitSignatures()
  ) throws {
    guard let key = try identities.signKey(user: fields.writer, generation: fields.writerGen) else {
      throw ZDCSecurityError(.writerUnknown, user: fields.writer)
    }
    let isValid = known.contains(self, by: key) || hasSignature(by: key)
    try require(isValid, .signatureInvalid)
  }
}
