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

// A package of its own, so that Tern itself has no packages. Of grpc-swift-2, only GRPCCore is built.
let package = Package(
    name: "TernGRPC",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [.library(name: "TernGRPCTransport", targets: ["TernGRPCTransport"])],
    dependencies: [
        .package(name: "Tern", path: "../.."),
        .package(url: "https://github.com/grpc/grpc-swift-2.git", from: "2.4.3"),
    ],
    targets: [
        .target(
            name: "TernGRPCTransport",
            dependencies: [
                .product(name: "GRPCCore", package: "grpc-swift-2"),
                .product(name: "Tern", package: "Tern"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernGRPCTransportTests",
            dependencies: [
                "TernGRPCTransport",
                .product(name: "GRPCCore", package: "grpc-swift-2"),
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
            ],
            exclude: ["server.py"],
            swiftSettings: settings
        ),
    ]
)
