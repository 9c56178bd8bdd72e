// swift-tools-version: 6.1
import PackageDescription

// Dependencies, by the name their products are imported under.
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let httpClient: Target.Dependency = .product(name: "AsyncHTTPClient", package: "async-http-client")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore: Target.Dependency = .product(name: "HummingbirdCore", package: "hummingbird")
let hummingbirdTLS: Target.Dependency = .product(name: "HummingbirdTLS", package: "hummingbird")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let arguments: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
  name: "ZeroDarkCloud",
  platforms: [.macOS("26.0"), .iOS("26.0"), .tvOS("26.0"), .watchOS("26.0"), .visionOS("26.0")],
  products: [
    .library(name: "ZeroDarkCloud", targets: ["ZeroDarkCloud"]),
    .library(name: "ZeroDarkCloudTesting", targets: ["ZeroDarkCloudTesting"]),
    .library(name: "ZDCServer", targets: ["ZDCServer", "ZDCServerSQLite"]),
    .executable(name: "zdc-server", targets: ["zdc-server"]),
    .executable(name: "zdc", targets: ["zdc"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    // Protocol objects, codec, replay, routes and limits, shared by client and server.
    .target(name: "ZDCProtocol", dependencies: [crypto]),
    // Cleartext model and rules. Values only, no input or output.
    .target(name: "ZDCTreesystem", dependencies: ["ZDCProtocol"]),
    // Changes to the app's own values: changesets, undo, three-way merge. Independent of nodes.
    .target(name: "ZDCMerge"),
    // Everything that touches a secret key.
    .target(
      name: "ZDCCrypto", dependencies: ["ZDCProtocol", crypto, cryptoExtras],
      resources: [.embedInCode("Resources/bip39-english.txt")]),
    // Shared helpers of the framework: errors, locks, retry policy, private files.
    .target(name: "ZDCSupport", dependencies: ["ZDCProtocol"]),
    // The server's routes as functions; the only part of the client that knows HTTP.
    .target(name: "ZDCClientAPI", dependencies: ["ZDCProtocol", "ZDCCrypto", "ZDCSupport", httpClient]),
    // The local database: transactions, records, an app's view of its nodes, the queue. Independent of delegate and
    // network.
    .target(
      name: "ZDCClientStore",
      dependencies: ["ZDCProtocol", "ZDCTreesystem", "ZDCMerge", "ZDCCrypto", "ZDCSupport", grdb, sqlite, logging]),
    // Local users: account creation, login, keys, the identity chain.
    .target(
      name: "ZDCAccounts",
      dependencies: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", logging,
      ]),
    // Content: upload sources, downloads, local files, images, progress.
    .target(
      name: "ZDCTransfers",
      dependencies: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", "ZDCAccounts",
        grdb,
      ]),
    // The engine: push, pull, one worker per zone, and the delegate that it calls.
    .target(
      name: "ZDCSync",
      dependencies: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", "ZDCAccounts",
        "ZDCTransfers", grdb, logging, lifecycle,
      ]),
    // The framework that apps import.
    .target(
      name: "ZeroDarkCloud",
      dependencies: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCMerge", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", "ZDCAccounts",
        "ZDCTransfers", "ZDCSync", grdb,
      ]),
    // The server. It may import only ZDCProtocol, and without ZDCCrypto it cannot decrypt anything.
    .target(
      name: "ZDCServer",
      dependencies: [
        "ZDCProtocol", crypto, hummingbird, hummingbirdCore, hummingbirdTLS, httpTypes, logging, lifecycle,
      ]),
    .target(name: "ZDCServerSQLite", dependencies: ["ZDCServer", "ZDCProtocol", grdb, sqlite, logging]),
    // In-memory versions of both stores, for tests.
    .target(name: "ZDCServerMemory", dependencies: ["ZDCServer", "ZDCProtocol"]),
    // Large content in an S3 object store.
    .target(name: "ZDCServerS3", dependencies: ["ZDCServer", "ZDCProtocol", crypto, httpClient]),
    // The metadata store over PostgreSQL, for servers that outgrow one machine.
    .target(name: "ZDCServerPostgres", dependencies: ["ZDCServer", "ZDCProtocol", crypto]),
    .executableTarget(
      name: "zdc-server",
      dependencies: [
        "ZDCServer", "ZDCServerPostgres", "ZDCServerS3", "ZDCServerSQLite", "ZDCProtocol", arguments, httpClient,
        logging,
        lifecycle, unixSignals,
      ]),
    // Implementation of the zdc commands; the executable only parses their arguments.
    .target(name: "ZDCCommands", dependencies: ["ZeroDarkCloud", "ZDCProtocol", "ZDCTreesystem", logging]),
    .executableTarget(name: "zdc", dependencies: ["ZDCCommands", arguments]),
    // The testing product for app authors: in-process server, faulty transport, stepped devices.
    .target(
      name: "ZeroDarkCloudTesting",
      dependencies: [
        "ZeroDarkCloud", "ZDCClientStore", "ZDCServer", "ZDCServerSQLite", "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto",
        grdb, logging,
      ]),
    // `make bench`. A target rather than a separate package, so that it measures what `make demo` built.
    .executableTarget(
      name: "zdc-bench",
      dependencies: ["ZeroDarkCloud", "ZDCTreesystem", "ZDCCrypto", "ZDCProtocol", crypto, grdb, arguments],
      path: "Benchmarks"),

    // Every decoder, with the properties that must hold for any bytes: replayed by `make test`, explored by
    // `make fuzz`.
    .target(
      name: "ZDCFuzzTargets",
      dependencies: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCServer", "ZDCServerSQLite", "ZeroDarkCloud", "ZDCCommands",
        crypto,
      ],
      path: "Fuzz/Targets"),

    .testTarget(name: "ZDCProtocolTests", dependencies: ["ZDCProtocol", crypto]),
    .testTarget(name: "ZDCTreesystemTests", dependencies: ["ZDCTreesystem"]),
    .testTarget(name: "ZDCMergeTests", dependencies: ["ZDCMerge"]),
    .testTarget(
      name: "ZDCCryptoTests", dependencies: ["ZDCCrypto", "ZDCProtocol", "ZDCClientStore", "ZDCAccounts", crypto],
      exclude: ["Vectors"]),
    .testTarget(
      name: "ZeroDarkCloudTests",
      dependencies: [
        "ZeroDarkCloud", "ZeroDarkCloudTesting", "ZDCServer", "ZDCServerSQLite", "ZDCProtocol", "ZDCTreesystem",
        "ZDCCrypto", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", "ZDCAccounts", "ZDCTransfers", "ZDCSync", grdb,
        logging,
      ]),
    .testTarget(
      name: "ZDCServerTests",
      dependencies: [
        "ZDCServer", "ZDCServerSQLite", "ZDCServerMemory", "ZDCServerPostgres", "ZDCServerS3", "ZDCProtocol",
        "zdc-server", crypto, grdb, sqlite,
        httpClient, logging,
      ], exclude: ["Fixture/FolderOfVersion7"]),
    .testTarget(
      name: "SyncTests",
      dependencies: [
        "ZeroDarkCloud", "ZeroDarkCloudTesting", "ZDCProtocol", "ZDCCrypto", "ZDCClientStore", "ZDCAccounts",
        "ZDCSync", grdb,
      ]),
    // The code of the original documentation, as an app would contain it.
    .testTarget(name: "SeedTests", dependencies: ["ZeroDarkCloud", "ZeroDarkCloudTesting", "TutorialStep11"]),
    // An app that uses only public declarations, which must be sufficient.
    .testTarget(
      name: "PublicAppTests", dependencies: ["ZeroDarkCloud", "ZDCMerge", "ZeroDarkCloudTesting"],
      packageAccess: false),
    .testTarget(
      name: "CommandTests", dependencies: ["ZDCCommands", "ZeroDarkCloud", "ZDCProtocol", "zdc", "zdc-server"],
      exclude: ["scripts", "Sentences.txt"]),
    .testTarget(name: "FuzzTests", dependencies: ["ZDCFuzzTargets"], exclude: ["Corpus"]),
    .testTarget(name: "ArchitectureTests"),
  ],
  swiftLanguageModes: [.v6]
)

// The same settings for every target except the code of the original documentation: apps enable no upcoming features.
for target in package.targets where target.name != "SeedTests" {
  target.swiftSettings = [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
  ]
}

// The documentation's tutorial, as the reader has it after each step: the catalog shows exactly what is compiled.
let tutorialSteps = 1...11
let tutorialFiles = tutorialSteps.map { $0 < 10 ? "Notes-0\($0).swift" : "Notes-\($0).swift" }
for (step, file) in zip(tutorialSteps, tutorialFiles) {
  let name = "TutorialStep\(step)"
  package.targets.append(
    .target(
      name: name, dependencies: ["ZeroDarkCloud"], path: "Sources/ZeroDarkCloud/Documentation.docc/Resources",
      exclude: tutorialFiles.filter { $0 != file } + ["notes.svg"], sources: [file]))
}

// `make fuzz`: libFuzzer provides the main function and requires our targets to be instrumented. A package with unsafe
// flags cannot be a dependency, so only this build has them.
if Context.environment["ZDC_FUZZ"] == "1" {
  let sanitizers = SwiftSetting.unsafeFlags(["-sanitize=fuzzer,address", "-O"])
  for target in package.targets where target.type == .regular { target.swiftSettings?.append(sanitizers) }
  package.targets.append(
    .executableTarget(
      name: "zdc-fuzz", dependencies: ["ZDCFuzzTargets"], path: "Fuzz/Driver",
      swiftSettings: [
        sanitizers, .unsafeFlags(["-parse-as-library"]), .enableUpcomingFeature("InternalImportsByDefault"),
      ],
      linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]))
}
