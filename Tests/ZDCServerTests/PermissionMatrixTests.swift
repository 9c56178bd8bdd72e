import Testing
import ZDCProtocol

/// Permissions in a shared branch: each role, each request, in five variants. A refused request changes nothing.
@Suite struct PermissionMatrixTests {
  typealias Role = SharedBranch.Role

  static let writers: Set<Role> = [.owner, .sharer, .writer]

  /// The roles that each change is allowed to.
  static func allowed(_ change: SharedBranch.Change) -> Set<Role> {
    switch change {
    case .create: writers.union([.creator])
    case .modify, .move, .delete, .modifyRoot: writers
    case .addMember, .removeMember: [.owner, .sharer]
    case .leave: [.sharer, .writer, .creator, .reader]
    case .lowerOwner: []
    case .end: [.owner]
    }
  }

  @Test(arguments: Role.allCases) func changes(role: Role) async throws {
    try await TestServer.run { (server: TestServer) async throws in
      for change in SharedBranch.Change.allCases {
        var branch = try await SharedBranch(server)
        let isAllowed = Self.allowed(change).contains(role)
        for variant in SharedBranch.Variant.allCases {
          let (before, answer) = (try await branch.log(), try await branch.attempt(change, by: role, variant))
          let expected = Self.status(role, change, variant, isAllowed: isAllowed)
          #expect(answer.status == expected, "\(role) \(change) \(variant): \(answer.text)")
          let isDone = answer.status == 200 && variant == .valid
          #expect((try await branch.log() != before) == isDone, "\(role) \(change) \(variant)")
        }
      }
    }
  }

  private static func status(
    _ role: Role, _ change: SharedBranch.Change, _ variant: SharedBranch.Variant, isAllowed: Bool
  ) -> Int {
    switch (role, variant) {
    // For them the zone does not exist.
    case (.former, _), (.stranger, _): 404
    case (_, .otherSession): 403
    // Refused before the zone's turn, because a reader may change nothing but their own membership.
    case (.reader, _) where !change.isOfList: 403
    case (_, .oldHead): 409
    case (_, .otherSignature): 422
    case (_, .valid), (_, .repeated): isAllowed ? 200 : 422
    }
  }
}
