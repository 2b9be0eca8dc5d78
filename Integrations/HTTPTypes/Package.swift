// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .strictMemorySafety(),
]

// A package of its own, so that Tern itself has no packages.
let package = Package(
    name: "TernHTTPTypes",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "TernHTTPTypes", targets: ["TernHTTPTypes"])
    ],
    dependencies: [
        .package(name: "Tern", path: "../.."),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
    ],
    targets: [
        .target(
            name: "TernHTTPTypes",
            dependencies: [
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Tern", package: "Tern"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernHTTPTypesTests",
            dependencies: [
                "TernHTTPTypes",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
            ],
            swiftSettings: settings
        ),
    ]
)
