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

let package = Package(
    name: "SharedCache",
    platforms: [.macOS(.v15)],
    products: [.library(name: "TernSharedCache", targets: ["TernSharedCache"])],
    dependencies: [.package(name: "Tern", path: "../..")],
    targets: [
        .target(name: "CTernRedis", linkerSettings: [.linkedLibrary("hiredis"), .linkedLibrary("z")]),
        .target(
            name: "TernSharedCache",
            dependencies: ["CTernRedis", .product(name: "TernCache", package: "Tern")],
            swiftSettings: settings
        ),
        // A server of the fleet, of which the tests run two.
        .executableTarget(
            name: "SharedCacheChild",
            dependencies: [
                "TernSharedCache",
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernCache", package: "Tern"),
                .product(name: "TernImages", package: "Tern"),
            ],
            path: "Tests/SharedCacheChild",
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernSharedCacheTests",
            dependencies: [
                "SharedCacheChild", "TernSharedCache",
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernCache", package: "Tern"),
                .product(name: "TernHTTPCache", package: "Tern"),
                .product(name: "TernImages", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
            ],
            swiftSettings: settings
        ),
    ]
)
