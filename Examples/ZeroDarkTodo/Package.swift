// swift-tools-version: 6.1
import PackageDescription

let zeroDark: Target.Dependency = .product(name: "ZeroDarkCloud", package: "ZeroDarkCloud")

let package = Package(
  name: "ZeroDarkTodo",
  platforms: [.macOS("26.0"), .iOS("26.0")],
  products: [.library(name: "TodoKit", targets: ["TodoKit"])],
  dependencies: [
    .package(name: "ZeroDarkCloud", path: "../..")
  ],
  targets: [
    // The app without a user interface. An iOS app can use it as it is.
    .target(name: "TodoKit", dependencies: [zeroDark]),
    .testTarget(
      name: "TodoTests",
      dependencies: ["TodoKit", .product(name: "ZeroDarkCloudTesting", package: "ZeroDarkCloud")]),
  ]
)
