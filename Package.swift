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
    // What client and server share: objects, codec, replay, routes, limits.
    .target(name: "ZDCProtocol", dependencies: [crypto]),
    // Cleartext model and rules. Values only, no input or output.
    .target(name: "ZDCTreesystem", dependencies: ["ZDCProtocol"]),
    // Changes of the app's own values: changesets, undo, three-way merge. Knows nothing of nodes.
    .target(name: "ZDCMerge"),
    // Everything that touches a secret key.
    .target(
      name: "ZDCCrypto", dependencies: ["ZDCProtocol", crypto, cryptoExtras],
      resources: [.embedInCode("Resources/bip39-english.txt")]),
    // What every part of the framework needs: errors, locks, retry policy, private files.
    .target(name: "ZDCSupport", dependencies: ["ZDCProtocol"]),
    // The server's routes as functions; the only place on the client that knows HTTP.
    .target(name: "ZDCClientAPI", dependencies: ["ZDCProtocol", "ZDCCrypto", "ZDCSupport", httpClient]),
    // The local database: transactions, records, an app's view of its nodes, the queue. Knows no delegate and no network.
    .target(
      name: "ZDCClientStore",
      dependencies: ["ZDCProtocol", "ZDCTreesystem", "ZDCMerge", "ZDCCrypto", "ZDCSupport", grdb, sqlite, logging]),
    // Local users: creating an account, logging in, keys, the identity chain.
    .target(
      name: "ZDCAccounts",
      dependencies: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", logging,
      ]),
    // Content: sources of uploads, downloads, local files, images, progress.
    .target(
      name: "ZDCTransfers",
      dependencies: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", "ZDCAccounts",
        grdb,
      ]),
    // The engine: push, pull, a worker for each zone; the delegate that it calls.
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
        "ZDCTransfers", "ZDCSync",
      ]),
    // The server. It may import ZDCProtocol only: what it cannot import it cannot read.
    .target(
      name: "ZDCServer",
      dependencies: [
        "ZDCProtocol", crypto, hummingbird, hummingbirdCore, hummingbirdTLS, httpTypes, logging, lifecycle,
      ]),
    .target(name: "ZDCServerSQLite", dependencies: ["ZDCServer", "ZDCProtocol", grdb, sqlite, logging]),
    // Both stores in memory, for tests.
    .target(name: "ZDCServerMemory", dependencies: ["ZDCServer", "ZDCProtocol"]),
    .executableTarget(
      name: "zdc-server",
      dependencies: ["ZDCServer", "ZDCServerSQLite", arguments, logging, lifecycle, unixSignals]),
    // What the commands of zdc do; the executable only parses their arguments.
    .target(name: "ZDCCommands", dependencies: ["ZeroDarkCloud", "ZDCProtocol", "ZDCTreesystem", logging]),
    .executableTarget(name: "zdc", dependencies: ["ZDCCommands", arguments]),
    // The testing product for app authors: real server in process, faulty transport, stepped devices.
    .target(
      name: "ZeroDarkCloudTesting",
      dependencies: [
        "ZeroDarkCloud", "ZDCServer", "ZDCServerSQLite", "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", grdb, logging,
      ]),
    // `make bench`. A target and not a package of its own, so that it measures what `make demo` built.
    .executableTarget(
      name: "zdc-bench",
      dependencies: ["ZeroDarkCloud", "ZDCTreesystem", "ZDCCrypto", "ZDCProtocol", crypto, grdb, arguments],
      path: "Benchmarks"),

    // Every decoder with what must hold for any bytes: replayed by `make test`, explored by `make fuzz`.
    .target(
      name: "ZDCFuzzTargets",
      dependencies: [
        "ZDCProtocol", "ZDCTreesystem", "ZDCCrypto", "ZDCServer", "ZeroDarkCloud", "ZDCCommands", crypto,
      ],
      path: "Fuzz/Targets"),

    .testTarget(name: "ZDCProtocolTests", dependencies: ["ZDCProtocol", crypto]),
    .testTarget(name: "ZDCTreesystemTests", dependencies: ["ZDCTreesystem"]),
    .testTarget(name: "ZDCMergeTests", dependencies: ["ZDCMerge"]),
    .testTarget(
      name: "ZDCCryptoTests", dependencies: ["ZDCCrypto", "ZDCProtocol", crypto],
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
        "ZDCServer", "ZDCServerSQLite", "ZDCServerMemory", "ZDCProtocol", "zdc-server", crypto, grdb, sqlite,
        httpClient, logging,
      ]),
    .testTarget(
      name: "SyncTests",
      dependencies: [
        "ZeroDarkCloud", "ZeroDarkCloudTesting", "ZDCProtocol", "ZDCCrypto", "ZDCClientStore", "ZDCAccounts",
        "ZDCSync", grdb,
      ]),
    // The code of the seed documents, as an app would have it.
    .testTarget(name: "SeedTests", dependencies: ["ZeroDarkCloud", "ZeroDarkCloudTesting", "TutorialStep11"]),
    // An app: what is public has to be enough for it.
    .testTarget(
      name: "PublicAppTests", dependencies: ["ZeroDarkCloud", "ZDCMerge", "ZeroDarkCloudTesting"],
      packageAccess: false),
    .testTarget(
      name: "CommandTests", dependencies: ["ZDCCommands", "ZeroDarkCloud", "ZDCProtocol", "zdc", "zdc-server"],
      exclude: ["scripts"]),
    .testTarget(name: "FuzzTests", dependencies: ["ZDCFuzzTargets"], exclude: ["Corpus"]),
    .testTarget(name: "ArchitectureTests"),
  ],
  swiftLanguageModes: [.v6]
)

// One settings loop for every target, but for the code of the seed documents: an app's code has no upcoming features.
for target in package.targets where target.name != "SeedTests" {
  target.swiftSettings = [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
  ]
}

// The documentation's tutorial, as its reader has it after each step: what the catalogue shows is what is compiled.
let tutorialSteps = 1...11
let tutorialFiles = tutorialSteps.map { $0 < 10 ? "Notes-0\($0).swift" : "Notes-\($0).swift" }
for (step, file) in zip(tutorialSteps, tutorialFiles) {
  let name = "TutorialStep\(step)"
  package.targets.append(
    .target(
      name: name, dependencies: ["ZeroDarkCloud"], path: "Sources/ZeroDarkCloud/Documentation.docc/Resources",
      exclude: tutorialFiles.filter { $0 != file } + ["notes.svg"], sources: [file]))
}

// `make fuzz`: libFuzzer brings the main function and needs our own targets instrumented. Unsafe flags keep a package
// from being a dependency, so they exist in that build only.
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
