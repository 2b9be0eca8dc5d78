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

let tern = Target.Dependency.product(name: "Tern", package: "Tern")
let testing = Target.Dependency.product(name: "TernTesting", package: "Tern")

// A package of its own, so that Tern itself has no packages. Each product can be used alone.
let package = Package(
    name: "TernObservability",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "TernLogging", targets: ["TernLogging"]),
        .library(name: "TernMetrics", targets: ["TernMetrics"]),
        .library(name: "TernTracing", targets: ["TernTracing"]),
    ],
    dependencies: [
        .package(name: "Tern", path: "../.."),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.3"),
    ],
    targets: [
        // The beginnings and ends of tasks and of requests on the wire, which all three products report.
        .target(name: "TernObservation", dependencies: [tern], swiftSettings: settings),
        .target(
            name: "TernLogging",
            dependencies: ["TernObservation", tern, .product(name: "Logging", package: "swift-log")],
            swiftSettings: settings
        ),
        .target(
            name: "TernMetrics",
            dependencies: ["TernObservation", tern, .product(name: "Metrics", package: "swift-metrics")],
            swiftSettings: settings
        ),
        .target(
            name: "TernTracing",
            dependencies: ["TernObservation", tern, .product(name: "Tracing", package: "swift-distributed-tracing")],
            swiftSettings: settings
        ),
        // The program of Documentation/Integrations.md.
        .testTarget(
            name: "ArticleTests",
            dependencies: [
                "TernLogging", "TernMetrics", "TernTracing", tern, testing,
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernObservationTests",
            dependencies: ["TernObservation", tern, testing],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernLoggingTests",
            dependencies: [
                "TernLogging", tern, testing, .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernMetricsTests",
            dependencies: [
                "TernMetrics", "TernObservation", tern, testing,
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernTracingTests",
            dependencies: [
                "TernTracing", tern, testing,
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings
        ),
    ]
)
