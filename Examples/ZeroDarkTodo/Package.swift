// swift-tools-version: 6.1
import PackageDescription

let zeroDark: Target.Dependency = .product(name: "ZeroDarkCloud", package: "ZeroDarkCloud")

let package = Package(
  name: "ZeroDarkTodo",
  platforms: [.macOS("26.0"), .iOS("26.0")],
  products: [.library(name: "TodoKit", targets: ["TodoKit"])],
  dependencies: [
    .package(name: "ZeroDarkCloud", path: "../.."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    // The app without a user interface. An iOS app can use it unchanged.
    .target(name: "TodoKit", dependencies: [zeroDark]),
    // Commands for a terminal, and a page for a browser.
    .executableTarget(
      name: "zdc-todo",
      dependencies: [
        "TodoKit", zeroDark, .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      resources: [.embedInCode("Web/style.css"), .embedInCode("Web/page.js")]),
    .testTarget(
      name: "TodoTests",
      dependencies: [
        "TodoKit", "zdc-todo", .product(name: "ZeroDarkCloudTesting", package: "ZeroDarkCloud"),
      ]),
  ]
)
