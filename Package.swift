// swift-tools-version: 6.2
import PackageDescription

/// The settings of every Swift target. Swift 6 mode comes from the tools version.
var settings: [SwiftSetting] = [
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .strictMemorySafety(),
]

// Development switches, read from the environment by the Makefile's own targets; consumers never set them.
// TERN_URLSESSION=1: build and default to the URLSession transport on Linux too (`make test-urlsession`).
if Context.environment["TERN_URLSESSION"] == "1" { settings.append(.define("TERN_URLSESSION")) }
// TERN_NO_POLLING=1: event loops that sleep at once, for a row of `Benchmarks/run`.
if Context.environment["TERN_NO_POLLING"] == "1" { settings.append(.define("TERN_NO_POLLING")) }
// TERN_PTHREAD_LOCK=1: thread sanitizer does not see into Synchronization.Mutex (`make test-tsan`).
if Context.environment["TERN_PTHREAD_LOCK"] == "1" { settings.append(.define("TERN_PTHREAD_LOCK")) }

let package = Package(
    name: "Tern",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "Tern", targets: ["Tern"]),
        .library(name: "TernCache", targets: ["TernCache"]),
        .library(name: "TernHTTPCache", targets: ["TernHTTPCache"]),
        .library(name: "TernImages", targets: ["TernImages"]),
        .library(name: "TernInspector", targets: ["TernInspector"]),
        .library(name: "TernJSON", targets: ["TernJSON"]),
        .library(name: "TernStreaming", targets: ["TernStreaming"]),
        .library(name: "TernTesting", targets: ["TernTesting"]),
        .library(name: "TernTransfers", targets: ["TernTransfers"]),
        .library(name: "TernViewModels", targets: ["TernViewModels"]),
        .library(name: "TernXML", targets: ["TernXML"]),
    ],
    targets: [
        .target(name: "CTernFiles", dependencies: [.target(name: "CTernLoop", condition: .when(platforms: [.linux]))]),
        .target(name: "CTernIDN", linkerSettings: [.linkedLibrary("idn2", .when(platforms: [.linux]))]),
        .target(
            name: "CTernZ",
            linkerSettings: [.linkedLibrary("z"), .linkedLibrary("dl", .when(platforms: [.linux]))]
        ),
        .target(name: "CTernSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(name: "CTernXML", linkerSettings: [.linkedLibrary("expat", .when(platforms: [.linux]))]),
        .target(
            name: "CTernCodecs",
            linkerSettings: ["jpeg", "png", "webp", "webpdemux", "gif", "z", "m", "dl"].map {
                .linkedLibrary($0, .when(platforms: [.linux]))
            }
        ),
        .target(
            name: "TernConcurrency",
            dependencies: [.target(name: "CTernLoop", condition: .when(platforms: [.linux]))],
            swiftSettings: settings
        ),
        .target(name: "TernJSON", swiftSettings: settings),
        .testTarget(name: "TernJSONTests", dependencies: ["TernJSON"], swiftSettings: settings),
        // The engine for Linux.
        .target(
            name: "CTernOpenSSL",
            linkerSettings: ["ssl", "crypto"].map { .linkedLibrary($0, .when(platforms: [.linux])) }
        ),
        .target(name: "CTernLoop"),
        .target(name: "CTernHTTP2", linkerSettings: [.linkedLibrary("nghttp2", .when(platforms: [.linux]))]),
        .target(name: "CTernHTTP3"),
        .target(
            name: "TernEngine",
            dependencies: ["CTernHTTP2", "CTernHTTP3", "CTernLoop", "CTernOpenSSL", "TernConcurrency"],
            swiftSettings: settings
        ),
        // The servers and certificates of the engine's tests.
        .target(
            name: "CTernTestTLS",
            path: "Tests/CTernTestTLS",
            linkerSettings: ["ssl", "crypto"].map { .linkedLibrary($0, .when(platforms: [.linux])) }
        ),
        // The decoder of HPACK that the tests of HTTP/2 read requests with.
        .target(
            name: "CTernTestHTTP2",
            path: "Tests/CTernTestHTTP2",
            linkerSettings: [.linkedLibrary("nghttp2", .when(platforms: [.linux]))]
        ),
        // A server of HTTP/3 in memory, for the tests and the fuzz targets of the engine's session.
        .target(name: "CTernTestHTTP3", dependencies: ["CTernHTTP3"], path: "Tests/CTernTestHTTP3"),
        .target(
            name: "HTTP3TestSupport",
            dependencies: ["CTernTestHTTP3", "CTernTestTLS", "TernEngine"],
            path: "Tests/HTTP3TestSupport",
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernEngineTests",
            dependencies: ["CTernTestHTTP2", "CTernTestTLS", "HTTP3TestSupport", "TernConcurrency", "TernEngine"],
            swiftSettings: settings
        ),
        .target(
            name: "Tern",
            dependencies: [
                "CTernFiles", "CTernIDN", "CTernZ", "TernConcurrency", "TernJSON",
                .target(name: "TernEngine", condition: .when(platforms: [.linux])),
            ],
            swiftSettings: settings
        ),
        .target(name: "TernCache", dependencies: ["CTernSQLite", "TernConcurrency"], swiftSettings: settings),
        .target(
            name: "TernHTTPCache",
            dependencies: ["Tern", "TernCache", "TernConcurrency"],
            swiftSettings: settings
        ),
        .target(
            name: "TernImages",
            dependencies: ["CTernCodecs", "Tern", "TernCache", "TernConcurrency", "TernHTTPCache"],
            swiftSettings: settings
        ),
        .target(
            name: "TernStreaming", dependencies: ["CTernZ", "Tern", "TernConcurrency"], swiftSettings: settings),
        .target(
            name: "TernTransfers",
            dependencies: [
                "CTernSQLite", "Tern", "TernCache", "TernConcurrency",
                .target(name: "CTernOpenSSL", condition: .when(platforms: [.linux])),
            ],
            swiftSettings: settings
        ),
        .target(name: "TernTesting", dependencies: ["Tern", "TernConcurrency"], swiftSettings: settings),
        .target(
            name: "TernInspector", dependencies: ["Tern", "TernConcurrency", "TernTesting"], swiftSettings: settings),
        .target(
            name: "TernViewModels", dependencies: ["Tern", "TernConcurrency", "TernImages"], swiftSettings: settings),
        .target(name: "TernXML", dependencies: ["CTernXML", "Tern"], swiftSettings: settings),
        .testTarget(
            name: "TernTests",
            dependencies: [
                "Tern", "TernConcurrency", "TernTesting",
                .target(name: "TernEngine", condition: .when(platforms: [.linux])),
            ],
            swiftSettings: settings
        ),
        // The program that the disk cache's crash test kills.
        .executableTarget(
            name: "DiskCrashChild",
            dependencies: ["TernCache"],
            path: "Tests/DiskCrashChild",
            swiftSettings: settings
        ),
        // The program that the HTTP cache's crash test kills.
        .executableTarget(
            name: "HTTPCacheCrashChild",
            dependencies: ["Tern", "TernHTTPCache", "TernTesting"],
            path: "Tests/HTTPCacheCrashChild",
            swiftSettings: settings
        ),
        // The program of `make fuzz`, in this package so that it sees `package` declarations.
        .target(
            name: "CTernFuzz",
            path: "Tests/Fuzz/CTernFuzz",
            linkerSettings: ["gif", "png"].map { .linkedLibrary($0, .when(platforms: [.linux])) }
        ),
        .executableTarget(
            name: "TernFuzz",
            dependencies: [
                "CTernFuzz", "CTernTestHTTP2", "Tern", "TernImages", "TernStreaming", "TernXML",
                .target(name: "HTTP3TestSupport", condition: .when(platforms: [.linux])),
                .target(name: "TernEngine", condition: .when(platforms: [.linux])),
            ],
            path: "Tests/Fuzz/TernFuzz",
            swiftSettings: settings
        ),
        .testTarget(
            name: "FuzzTests",
            dependencies: ["TernFuzz"],
            path: "Tests/Fuzz/FuzzTests",
            swiftSettings: settings
        ),
        // The second level of the caches' tests.
        .target(
            name: "CacheTestSupport",
            dependencies: ["TernCache", "TernConcurrency"],
            path: "Tests/CacheTestSupport",
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernCacheTests",
            dependencies: [
                "CTernSQLite", "CacheTestSupport", "DiskCrashChild", "TernCache", "TernConcurrency", "TernTesting",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernHTTPCacheTests",
            dependencies: [
                "CacheTestSupport", "HTTPCacheCrashChild", "Tern", "TernCache", "TernConcurrency", "TernHTTPCache",
                "TernTesting",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernImagesTests",
            dependencies: [
                "CacheTestSupport", "Tern", "TernCache", "TernConcurrency", "TernImages", "TernTesting",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernStreamingTests",
            dependencies: ["Tern", "TernConcurrency", "TernHTTPCache", "TernStreaming", "TernTesting"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernInspectorTests",
            dependencies: ["Tern", "TernConcurrency", "TernHTTPCache", "TernInspector", "TernTesting"],
            swiftSettings: settings
        ),
        // The program that the durable downloads' crash test kills.
        .executableTarget(
            name: "DownloadCrashChild",
            dependencies: ["Tern", "TernTransfers"],
            path: "Tests/DownloadCrashChild",
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernTransfersTests",
            dependencies: [
                "CTernSQLite", "DownloadCrashChild", "Tern", "TernCache", "TernConcurrency", "TernTesting",
                "TernTransfers",
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernViewModelsTests",
            dependencies: ["Tern", "TernConcurrency", "TernImages", "TernTesting", "TernViewModels"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernXMLTests",
            dependencies: ["Tern", "TernTesting", "TernXML"],
            swiftSettings: settings
        ),
        // The programs of the tutorial and the cookbook, which use public declarations alone.
        .testTarget(
            name: "ArticleTests",
            dependencies: ["Tern", "TernHTTPCache", "TernImages", "TernTesting", "TernViewModels"],
            swiftSettings: settings
        ),
        // The program of the tests about signals that would end a process.
        .executableTarget(
            name: "EngineChild",
            dependencies: ["Tern"],
            path: "Tests/EngineChild",
            swiftSettings: settings
        ),
        .testTarget(
            name: "WireTests",
            dependencies: [
                "CTernTestHTTP2", "CTernTestTLS", "EngineChild", "Tern", "TernConcurrency", "TernHTTPCache",
                "TernStreaming",
                "TernTesting",
                .target(name: "TernEngine", condition: .when(platforms: [.linux])),
            ],
            swiftSettings: settings
        ),
    ]
)

// `make test-urlsession` builds into a folder of its own: only the modules and the tests that the switch changes.
if Context.environment["TERN_URLSESSION"] == "1" {
    let names: Set = [
        "CTernFiles", "CTernHTTP2", "CTernHTTP3", "CTernIDN", "CTernLoop", "CTernOpenSSL", "CTernSQLite",
        "CTernTestHTTP2", "CTernTestTLS", "CTernZ", "EngineChild", "Tern", "TernCache", "TernConcurrency", "TernEngine",
        "TernHTTPCache",
        "TernJSON", "TernStreaming", "TernTesting", "TernTests", "WireTests",
    ]
    package.targets.removeAll { !names.contains($0.name) }
    package.products.removeAll { !names.contains($0.name) }
    // The tests about URLSession are in these folders.
    let folders = ["TernTests": ["Session", "Transport"], "WireTests": ["Support", "Transport"]]
    for target in package.targets { target.sources = folders[target.name] }
}
