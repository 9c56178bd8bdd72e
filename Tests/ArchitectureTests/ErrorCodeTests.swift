import Foundation
import Testing

/// Each code of a public error is covered by our own switches, has a name that apps can use, and is thrown somewhere.
@Suite struct ErrorCodeTests {
  /// Codes that are chosen by a function and thrown elsewhere, with the file of that function.
  private static let chosen: [String: [String: String]] = [
    "TransportError": [
      "unknownHost": "Sources/ZDCClientAPI/AsyncHTTPTransport+Errors.swift",
      "refused": "Sources/ZDCClientAPI/AsyncHTTPTransport+Errors.swift",
      "proxyAnswered": "Sources/ZDCClientAPI/AnswerError.swift",
    ],
    "ZDCSecurityError": [
      "zoneRollback": "Sources/ZDCSync/Rules/HeadRules.swift",
      "ownCommitMissing": "Sources/ZDCSync/Rules/HeadRules.swift",
      "inviteNotAuthorized": "Sources/ZDCSync/Pull/GraftAcceptance.swift",
    ],
  ]

  /// Codes of PROTOCOL 3.15 that belong to parts of the protocol that nothing implements yet. Apps do not see them.
  private static let reserved: [String: Set<String>] = [
    "ZDCSecurityError": [
      "logForkDetected", "logStale", "logProofInvalid",
      "witnessQuorumMissing", "keyTransparencyViolation", "checkpointMismatch",
      "zoneExists", "nestedZoneNotYours", "deletedRemotely", "unsupportedShare", "blobGone",
      "sessionOriginMismatch", "unsafeExportName",
    ]
  ]

  @Test(arguments: PublicError.all) func appsCanNameEveryCode_andReadWhatItMeans(error: PublicError) throws {
    let (names, members) = try (error.names, error.members)
    #expect(names.count > 3, "nothing was read")
    #expect(Set(members.keys) == names.subtracting(Self.reserved[error.name] ?? []))
    for (member, comment) in members {
      #expect(comment.count > 20, "\(error.name).\(member) has no comment")
      #expect(!comment.contains("not throw"), "\(error.name).\(member)")
    }
  }

  @Test(arguments: PublicError.all) func somethingThrowsEveryCode(error: PublicError) throws {
    let sources = try ThrowingSources()
    let thrown = sources.codes(thrownAs: error)
    let reserved = Self.reserved[error.name] ?? []
    for name in try error.names {
      if let file = Self.chosen[error.name]?[name] {
        #expect(sources.mentions(name, in: file), "\(file) no longer chooses \(name)")
      } else {
        #expect(thrown.contains(name) != reserved.contains(name), "\(error.name).\(name)")
      }
    }
    #expect(try reserved.isSubset(of: error.names))
  }

  /// An enum would make every new case break the `switch` of an app.
  @Test func noPublicErrorOfAProductIsAnEnum() throws {
    let declaration = /^\s*public (?:indirect )?enum \w+\s*:[^{]*\bError\b/.anchorsMatchLineEndings()
    let files = try ThrowingSources().textByPath
    #expect(files.count > 300, "nothing was read")
    // The package does not export this module.
    for (path, text) in files where !path.hasPrefix("Sources/ZDCCrypto/") {
      #expect(text.firstMatch(of: declaration) == nil, "\(path)")
    }
  }

  @Test func theCheckFindsWhatIsThrown() {
    let sources = ThrowingSources([
      "Sources/A.swift": """
      guard a else { throw ZDCError(isFull ? .diskFull : .fileFailure, detail: .other) }
      try require(count <= Limits.depth, .limitExceeded, node: node)
      // throw ZDCError(.commented)
      case .labelled: break
      """,
      "Sources/B.swift": "extension ZDCError { init(_ e: E) { self.init(.corruptDatabase, underlying: e) } }",
    ])
    let error = PublicError(name: "ZDCError", path: "Sources/ZDCSupport/ZDCError")
    #expect(sources.codes(thrownAs: error) == ["diskFull", "fileFailure", "corruptDatabase"])
    let security = PublicError(name: "ZDCSecurityError", path: "Sources/ZDCProtocol/ZDCSecurityError")
    #expect(sources.codes(thrownAs: security) == ["limitExceeded"])
    #expect(!sources.mentions("labelled", in: "Sources/A.swift"))
  }
}
