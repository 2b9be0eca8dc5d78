// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that consumers never see it; `make fuzz` builds it with the address sanitizer.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .strictMemorySafety(),
]

let package = Package(
    name: "Fuzz",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Tern", path: "../..")],
    targets: [
        .target(name: "CFuzz"),
        .executableTarget(
            name: "fuzz",
            dependencies: ["CFuzz", .product(name: "TernImages", package: "Tern")],
            swiftSettings: settings
        ),
    ]
)
