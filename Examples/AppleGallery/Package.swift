// swift-tools-version: 6.2
import PackageDescription

// A package of its own: it needs SwiftUI. scripts/checks/apple type-checks it on Linux, and scripts/try-on-mac runs it.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
]

let package = Package(
    name: "AppleGallery",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [.executable(name: "AppleGallery", targets: ["AppleGallery"])],
    dependencies: [
        // The name is given: the identity of a path is its folder's name, and a clone may have any.
        .package(name: "Tern", path: "../..")
    ],
    targets: [
        .executableTarget(
            name: "AppleGallery",
            dependencies: [
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernImages", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
                .product(name: "TernViewModels", package: "Tern"),
            ],
            path: "Sources",
            swiftSettings: settings
        )
    ]
)
