/// The modules that a target may import: ARCHITECTURE.md, "Targets", as a value.
struct TargetRule: Sendable {
  /// Targets of this package; Package.swift declares exactly these.
  var ours: Set<String>
  /// Products of other packages; Package.swift may declare these and no others.
  var others: Set<String> = []
  /// Modules whose types appear in the API of a declared product, so that users of the product must import them.
  var reachable: Set<String> = []
}

/// A module that only some folders of a target may import.
struct FolderRule: Sendable {
  var target: String
  var modules: Set<String>
  /// The empty folder is the top of the target; any other includes all folders below it.
  var allowedFolders: Set<String>
  /// Whether only `public import` is restricted.
  var publicOnly = false
  var reason: String
}

enum AllowedImports {
  static let platform: Set<String> = [
    "Foundation", "FoundationEssentials", "Dispatch", "Synchronization", "Glibc", "Musl", "Darwin", "Android",
    "SystemPackage", "os", "Security", "Observation", "RegexBuilder",
    "UIKit", "AppKit",
  ]

  private static let nio: Set<String> = [
    "NIOCore", "NIOHTTP1", "NIOHTTPTypes", "NIOSSL", "NIOPosix", "NIOFoundationCompat", "NIOConcurrencyHelpers",
  ]

  static let rulesByTarget: [String: TargetRule] = [
    "ZDCProtocol": TargetRule(ours: [], others: ["Crypto"]),
    "ZDCTreesystem": TargetRule(ours: ["ZDCProtocol"]),
    "ZDCMerge": TargetRule(ours: []),
    "ZDCCrypto": TargetRule(ours: ["ZDCProtocol"], others: ["Crypto", "CryptoExtras"]),
    "ZDCSupport": TargetRule(ours: ["ZDCProtocol"]),
    "ZDCClientAPI": TargetRule(
      ours: ["ZDCProtocol", "ZDCCrypto", "ZDCSupport"], others: ["AsyncHTTPClient"], reachable: nio),
    "ZDCClientStore": TargetRule(
      ours: ["ZDCProtocol", "ZDCTreesystem", "ZDCMerge", "ZDCCrypto", "ZDCSupport"],
      others: ["GRDB", "GRDBSQLite", "Logging"]),
    "ZDCAccounts": TargetRule(
      ours: ["ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore"],
      others: ["Logging"]),
    "ZDCTransfers": TargetRule(
      ours: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", "ZDCAccounts",
      ],
      others: ["GRDB"]),
    "ZDCSync": TargetRule(
      ours: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", "ZDCAccounts",
        "ZDCTransfers",
      ],
      others: ["GRDB", "Logging", "ServiceLifecycle"]),
    "ZeroDarkCloud": TargetRule(
      ours: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCMerge", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", "ZDCAccounts",
        "ZDCTransfers", "ZDCSync",
      ],
      others: ["GRDB"]),
    "ZDCServer": TargetRule(
      ours: ["ZDCProtocol"],
      others: [
        "Crypto", "Hummingbird", "HummingbirdCore", "HummingbirdTLS", "HTTPTypes", "Logging", "ServiceLifecycle",
      ],
      reachable: nio),
    "ZDCServerSQLite": TargetRule(
      ours: ["ZDCServer", "ZDCProtocol"], others: ["GRDB", "GRDBSQLite", "Logging"]),
    "ZDCServerMemory": TargetRule(ours: ["ZDCServer", "ZDCProtocol"]),
    "ZDCServerS3": TargetRule(
      ours: ["ZDCServer", "ZDCProtocol"], others: ["Crypto", "AsyncHTTPClient"], reachable: nio),
    "ZDCServerPostgres": TargetRule(ours: ["ZDCServer", "ZDCProtocol"], others: ["Crypto"]),
    "zdc-server": TargetRule(
      ours: ["ZDCServer", "ZDCServerPostgres", "ZDCServerS3", "ZDCServerSQLite", "ZDCProtocol"],
      others: ["ArgumentParser", "AsyncHTTPClient", "Logging", "ServiceLifecycle", "UnixSignals"], reachable: nio),
    "ZDCCommands": TargetRule(ours: ["ZeroDarkCloud", "ZDCProtocol", "ZDCTreesystem"], others: ["Logging"]),
    "zdc": TargetRule(ours: ["ZDCCommands"], others: ["ArgumentParser"]),
    "zdc-bench": TargetRule(
      ours: ["ZeroDarkCloud", "ZDCTreesystem", "ZDCCrypto", "ZDCProtocol"],
      others: ["Crypto", "GRDB", "ArgumentParser"]),
    "zdc-fuzz": TargetRule(ours: ["ZDCFuzzTargets"]),
    "ZDCFuzzTargets": TargetRule(
      ours: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCServer", "ZDCServerSQLite", "ZeroDarkCloud", "ZDCCommands",
      ],
      others: ["Crypto"]),
    "ZeroDarkCloudTesting": TargetRule(
      ours: [
        "ZeroDarkCloud", "ZDCClientStore", "ZDCServer", "ZDCServerSQLite", "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto",
      ],
      others: ["GRDB", "Logging"],
      reachable: nio),
  ]

  static let folderRules: [FolderRule] =
    ["ZDCTransfers", "ZDCSync"].map { target in
      FolderRule(
        target: target, modules: ["GRDB"], allowedFolders: [], publicOnly: true,
        reason: "GRDB's types are in our API only where an app reaches its own tables")
    } + foldersOfTargets

  private static let foldersOfTargets: [FolderRule] = [
    FolderRule(
      target: "ZDCClientStore", modules: ["GRDB"], allowedFolders: ["Database/"], publicOnly: true,
      reason: "GRDB's types are in our API only where an app reaches its own tables"),
    FolderRule(
      target: "ZDCClientStore", modules: ["GRDBSQLite"], allowedFolders: ["Records/"],
      reason: "SQLite's own calls read rows, where GRDB's row costs more than the query"),
    FolderRule(
      target: "ZDCServer", modules: nio.union(["Hummingbird", "HummingbirdCore", "HummingbirdTLS", "HTTPTypes"]),
      allowedFolders: ["", "Routes/", "Middleware/", "Events/", "Metrics/"],
      reason: "Domain/ decides and Stores/ keep: neither knows HTTP"),
  ]
}
