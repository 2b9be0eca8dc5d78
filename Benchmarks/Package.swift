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
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "Tern", path: ".."),
        // The peer is pinned, so that the figures of two runs compare; its own packages follow its rules.
        .package(url: "https://github.com/swift-server/async-http-client", exact: "1.37.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.100.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.30.0"),
    ],
    targets: [
        .target(name: "BenchShapes", swiftSettings: settings),
        .target(name: "BenchSupport", swiftSettings: settings),
        .executableTarget(name: "bench-c", linkerSettings: [.linkedLibrary("curl", .when(platforms: [.linux]))]),
        .executableTarget(name: "bench-sink"),
        .executableTarget(
            name: "bench-websocket-c", linkerSettings: [.linkedLibrary("websockets", .when(platforms: [.linux]))]),
        .executableTarget(
            name: "bench-tern",
            dependencies: [
                "BenchShapes", "BenchSupport",
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernInspector", package: "Tern"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "bench-ahc",
            dependencies: [
                "BenchSupport",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "_NIOFileSystem", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),
        // The programs of Documentation/Comparison.md.
        .executableTarget(
            name: "comparison",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernHTTPCache", package: "Tern"),
                .product(name: "TernImages", package: "Tern"),
            ]
        ),
        .executableTarget(
            name: "bench-cache",
            dependencies: [.product(name: "TernCache", package: "Tern")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "bench-http-cache",
            dependencies: [
                "BenchSupport",
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernHTTPCache", package: "Tern"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "bench-images",
            dependencies: [.product(name: "TernImages", package: "Tern")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "bench-images-c",
            linkerSettings: ["jpeg", "png", "webp"].map { .linkedLibrary($0, .when(platforms: [.linux])) }
        ),
        .executableTarget(
            name: "bench-json",
            dependencies: ["BenchShapes", .product(name: "TernJSON", package: "Tern")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "bench-pipeline",
            dependencies: [
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernImages", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "bench-streaming",
            dependencies: [
                "BenchSupport",
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernStreaming", package: "Tern"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(name: "bench-urlsession", dependencies: ["BenchSupport"], swiftSettings: settings),
        // The smallest programs, whose size and start `run-startup` compares.
        .executableTarget(
            name: "hello-tern", dependencies: [.product(name: "Tern", package: "Tern")], swiftSettings: settings),
        .executableTarget(
            name: "hello-ahc",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(name: "hello-urlsession", swiftSettings: settings),
        .executableTarget(name: "hello-c", linkerSettings: [.linkedLibrary("curl", .when(platforms: [.linux]))]),
    ]
)

// A switch that `Benchmarks/run` sets, with a scratch path of its own.
// TERN_BENCH_LOCAL=1: leave async-http-client out, and what is built with it, so that nothing is fetched.
if Context.environment["TERN_BENCH_LOCAL"] == "1" {
    package.dependencies.removeLast(3)
    package.targets.removeAll { ["bench-ahc", "hello-ahc", "comparison"].contains($0.name) }
}
