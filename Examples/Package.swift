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
    name: "Examples",
    platforms: [.macOS(.v15)],
    products: [
        // The target has another name: on a file system that ignores case, `tern` and `Tern` are one module.
        .executable(name: "tern", targets: ["TernTool"]),
        .executable(name: "tern-mirror", targets: ["TernMirror"]),
    ],
    dependencies: [
        // The name is given: the identity of a path is its folder's name, and a clone may have any.
        .package(name: "Tern", path: ".."),
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
    ],
    targets: [
        .executableTarget(
            name: "TernTool",
            dependencies: [
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernHTTPCache", package: "Tern"),
                .product(name: "TernImages", package: "Tern"),
                .product(name: "TernInspector", package: "Tern"),
                .product(name: "TernStreaming", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
                .product(name: "TernTransfers", package: "Tern"),
                .product(name: "TernViewModels", package: "Tern"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),
        // The program of the tutorial in Documentation/AMirrorThatSurvives.md.
        .executableTarget(
            name: "TernMirror",
            dependencies: [
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernTransfers", package: "Tern"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernToolTests",
            dependencies: [
                "TernMirror", "TernTool",
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernHTTPCache", package: "Tern"),
                .product(name: "TernImages", package: "Tern"),
                .product(name: "TernStreaming", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
                .product(name: "TernTransfers", package: "Tern"),
                .product(name: "TernViewModels", package: "Tern"),
            ],
            swiftSettings: settings
        ),
    ]
)
