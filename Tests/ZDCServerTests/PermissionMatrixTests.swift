import Testing
import ZDCProtocol

/// Permissions in a shared branch: each role, each change, in five variants, and each role, each other request, in the
/// variants that it can have. A refused request changes nothing.
@Suite struct PermissionMatrixTests {
  typealias Role = SharedBranch.Role
  typealias Change = SharedBranch.Change
  typealias Request = BranchRequests.Request

  @Test(arguments: Role.allCases) func changes(role: Role) async throws {
    let table = try PermissionTable()
    try await TestServer.run { (server: TestServer) async throws in
      var branch = try await SharedBranch(server)
      for change in Change.allCases {
        try await branch.prepare(change, by: role)
        for variant in SharedBranch.Variant.allCases {
          try await attempt(change, role, variant, in: &branch, table)
        }
        // The branch has another head, or the member other keys.
        let isChanged = table.allows(change.rawValue, role.rawValue) || [.deleteOwn, .retireOwnKey].contains(change)
        if isChanged { branch = try await SharedBranch(server) }
      }
    }
  }

  private func attempt(
    _ change: Change, _ role: Role, _ variant: SharedBranch.Variant, in branch: inout SharedBranch,
    _ table: PermissionTable
  ) async throws {
    let cell: Comment = "\(role) \(change) \(variant)"
    let isAllowed = table.allows(change.rawValue, role.rawValue)
    let (before, answer) = (try await branch.log(), try await branch.attempt(change, by: role, variant))
    let expected = Self.status(role, change, variant, isAllowed: isAllowed)
    #expect(answer.status == expected, "\(cell): \(answer.text)")
    if variant == .valid, expected == 422 {
      #expect(answer.error?.security?.description == table.code(change.rawValue), cell)
    }
    let isDone = answer.status == 200 && variant == .valid
    #expect((try await branch.log() != before) == isDone, cell)
  }

  private static func status(
    _ role: Role, _ change: Change, _ variant: SharedBranch.Variant, isAllowed: Bool
  ) -> Int {
    switch (role, variant) {
    case (.unauthenticated, _): 401
    // For them the zone does not exist.
    case (.former, _), (.stranger, _): 404
    case (_, .otherSession): 403
    // Refused before the zone's turn, because a reader may change only their own membership and keys.
    case (.reader, _) where !change.isOfList && change != .retireOwnKey: 403
    case (_, .oldHead): 409
    case (_, .otherSignature): 422
    case (_, .valid), (_, .repeated): isAllowed ? 200 : 422
    }
  }

  // MARK: Other requests

  @Test func requests() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      var requests = try await BranchRequests(try await SharedBranch(server))
      // The owner's requests come last, because the last one ends their session.
      for role in Role.allCases.reversed() {
        for request in Request.allCases where request != .removeDeviceOfOwner || role != .owner {
          try await attemptAll(request, role, &requests)
        }
      }
      try await attemptAll(.removeDeviceOfOwner, .owner, &requests, endsSession: true)
      #expect(try await requests.attempt(.devices, by: .owner, .valid).status == 401)
    }
  }

  /// None of the requests changes the branch.
  private func attemptAll(
    _ request: Request, _ role: Role, _ requests: inout BranchRequests, endsSession: Bool = false
  ) async throws {
    let before = try await requests.branch.log()
    for variant in BranchRequests.Variant.allCases {
      guard case .status(let expected) = BranchRequests.cell(request, role, variant) else { continue }
      let answer = try await requests.attempt(request, by: role, variant)
      let cell: Comment = "\(role) \(request) \(variant): \(answer.error?.message ?? "")"
      #expect(answer.status == expected, cell)
      if answer.status == 200 { try checkBody(of: answer, request, role, variant, in: requests.branch, cell) }
    }
    guard !endsSession else { return }
    let after = try await requests.branch.log()
    #expect(after == before, "\(role) \(request)")
  }

  private func checkBody(
    of answer: Answer, _ request: Request, _ role: Role, _ variant: BranchRequests.Variant, in branch: SharedBranch,
    _ cell: Comment
  ) throws {
    let account = try branch.person(role).account
    switch request {
    case .log where variant == .outdated: #expect(try answer.items().isEmpty == (role == .former), cell)
    case .log:
      let users = try answer.items().compactMap { if case .grant(let grant) = $0 { grant.user } else { nil } }
      #expect(Set(users) == [account.userID], cell)
    case .keyring: #expect(answer.bytes == account.keyring, cell)
    case .devices: #expect(try answer.json(SessionList.self).devices.map(\.deviceID) == [account.deviceID], cell)
    case .sendMessage: #expect(try answer.json(DeliveryResponse.self).results == [Self.delivery(variant)], cell)
    default: break
    }
  }

  private static func delivery(_ variant: BranchRequests.Variant) -> DeliveryResult {
    switch variant {
    case .otherPlace: .notFound
    case .outdated: .recipientKeyStale
    default: .delivered
    }
  }

  // MARK: Completeness

  /// Where an operation of the permission matrix is tested.
  enum Place: Sendable {
    case changes([Change])
    case requests([Request])
    /// In another suite.
    case elsewhere(String)
    /// The operation does not exist in this version.
    case absent(String)
  }

  static let operations: [(name: String, place: Place)] = [
    ("read the log and the list", .requests([.log])),
    ("read records and the state list", .requests([.state, .records, .kept, .node])),
    ("read content", .requests([.content, .leafHashes])),
    ("read the own grant", .requests([.log])),
    ("read the grant of another user", .requests([.log])),
    ("create a node", .changes([.create, .createBelow, .createOwnChild, .createContent])),
    ("modify a node", .changes([.modify, .modifyRoot])),
    ("move a node", .changes([.move])),
    ("move the branch", .absent("its place is that of the pointer, an ordinary node of the parent zone")),
    ("delete a node", .changes([.delete, .deleteBranch, .deleteOwn])),
    ("delete the branch", .changes([.end])),
    ("move to another zone", .changes([.create, .delete])),
    ("upload content", .requests([.ticket])),
    ("attach content of another node", .requests([.attach, .attachFromOtherNode])),
    ("add or modify a member", .changes([.addMember, .raiseMember])),
    ("give more rights than one has", .changes([.raiseMember, .raiseSelf])),
    ("remove a member", .changes([.removeMember])),
    ("leave", .changes([.leave])),
    ("change the owner's entry", .changes([.lowerOwner, .removeOwner])),
    ("split", .changes([.split])),
    ("rotate keys", .changes([.rotate])),
    ("write a checkpoint", .absent("there are no checkpoints")),
    ("retire a key", .changes([.retireOwnKey, .retireOtherKey])),
    ("send a message", .requests([.sendMessage])),
    ("read a mailbox", .requests([.listInbox, .readInbox, .deleteMessage, .decideAboutSender])),
    ("change a message", .elsewhere("InboxTests/theSameEnvelopeAgainIsDelivered_andAnotherOneWithItsIdExists")),
    ("append to a chain", .requests([.appendLinkOfOwner])),
    ("read the keyring", .requests([.keyring])),
    ("read chains", .requests([.chain])),
    ("list and remove devices", .requests([.devices, .removeDeviceOfOwner])),
    ("audit", .requests([.audit])),
  ]

  @Test func noCellOfTheTableIsEmpty() throws {
    let table = try PermissionTable()
    #expect(Set(table.rows.keys) == Set(Change.allCases.map(\.rawValue)))
    let columns = Set(Role.allCases.filter(\.isMember).map(\.rawValue))
    for (change, cells) in table.rows {
      #expect(Set(cells.keys) == columns.union([PermissionTable.codes]), "\(change)")
      #expect(columns.allSatisfy { ["yes", "no"].contains(cells[$0]) }, "\(change)")
      #expect(cells.values.contains("no") == (table.code(change) != ""), "\(change)")
    }
  }

  @Test func noOperationIsLeftOut() {
    var (changes, requests): (Set<Change>, Set<Request>) = ([], [])
    for (name, place) in Self.operations {
      switch place {
      case .changes(let some): changes.formUnion(some)
      case .requests(let some): requests.formUnion(some)
      case .elsewhere(let text), .absent(let text): #expect(!text.isEmpty, "\(name)")
      }
    }
    #expect(Self.operations.count == 31)
    #expect(changes == Set(Change.allCases))
    #expect(requests == Set(Request.allCases))
  }

  /// => every request is sent in each variant, or the table says why that is not possible
  @Test func noCellOfTheRequestsIsEmpty() {
    for request in Request.allCases {
      for variant in BranchRequests.Variant.allCases {
        let cells = Role.allCases.map { BranchRequests.cell(request, $0, variant) }
        let reasons = cells.compactMap { if case .absent(let reason) = $0 { reason } else { nil } }
        #expect(!reasons.contains(""), "\(request) \(variant)")
        // A variant does not depend on the role, but a request without a token has no session.
        let lacking = variant == .endedSession ? 1 : Role.allCases.count
        #expect(reasons.isEmpty || reasons.count == lacking, "\(request) \(variant)")
      }
    }
  }

  /// => the variants of the changes exist for the requests that have a signature, a version or an object
  @Test func eachVariantHasRequests() {
    func requests(_ variant: BranchRequests.Variant) -> Set<Request> {
      Set(
        Request.allCases.filter { if case .status = BranchRequests.cell($0, .owner, variant) { true } else { false } })
    }
    let signed: Set<Request> = [.attach, .attachFromOtherNode, .appendLinkOfOwner]
    for variant in [.valid, .repeated, .endedSession] as [BranchRequests.Variant] {
      #expect(requests(variant) == Set(Request.allCases), "\(variant)")
    }
    #expect(requests(.otherSignature) == signed)
    #expect(requests(.otherSession) == signed.union([.ticket]))
    #expect(requests(.outdated) == signed.union([.log, .records, .kept, .content, .leafHashes, .sendMessage]))
    #expect(requests(.otherPlace).count == Request.allCases.count - 4)
  }
}
