// swift-tools-version: 6.2
import PackageDescription

// A package of its own: the other examples build without GTK. `make gallery` at the top installs what it needs.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .strictMemorySafety(),
]

let package = Package(
    name: "Gallery",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "gallery", targets: ["GalleryProgram"]),
        .executable(name: "gallery-web", targets: ["GalleryWebProgram"]),
    ],
    dependencies: [
        // The name is given: the identity of a path is its folder's name, and a clone may have any.
        .package(name: "Tern", path: "../..")
    ],
    targets: [
        .systemLibrary(name: "CGtk", pkgConfig: "gtk4"),
        // GTK as Swift sees it, without Tern: the main loop, signals, widgets that own their Swift peer.
        .target(name: "GtkBridge", dependencies: ["CGtk"], swiftSettings: settings),
        // The widgets as Tern's view models: how each shows something, and no more.
        .target(
            name: "GalleryViews",
            dependencies: [
                "GtkBridge",
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernImages", package: "Tern"),
                .product(name: "TernViewModels", package: "Tern"),
            ],
            swiftSettings: settings
        ),
        // One line per check, and an exit code.
        .target(name: "GalleryChecks", swiftSettings: settings),
        .executableTarget(
            name: "GalleryProgram",
            dependencies: [
                "GtkBridge", "GalleryViews", "GalleryChecks",
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernImages", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
                .product(name: "TernViewModels", package: "Tern"),
            ],
            swiftSettings: settings
        ),
        .systemLibrary(name: "CWebKit", pkgConfig: "webkitgtk-6.0"),
        // Apart from the other widgets: who shows photos need not link WebKit.
        .target(
            name: "GalleryWeb",
            dependencies: [
                "CGtk", "CWebKit", "GtkBridge",
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernViewModels", package: "Tern"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "GalleryWebProgram",
            dependencies: [
                "GalleryChecks", "GalleryViews", "GalleryWeb", "GtkBridge",
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
                .product(name: "TernViewModels", package: "Tern"),
            ],
            swiftSettings: settings
        ),
    ]
)
