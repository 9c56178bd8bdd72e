// swift-tools-version: 6.1
import PackageDescription

let package = Package(
  name: "Minimal",
  platforms: [.macOS("26.0")],
  dependencies: [
    .package(name: "ZeroDarkCloud", path: "../..")
  ],
  targets: [
    .executableTarget(name: "Minimal", dependencies: [.product(name: "ZeroDarkCloud", package: "ZeroDarkCloud")])
  ]
)
