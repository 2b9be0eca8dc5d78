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

// TERN_OPENAPI_SHAPE=1, which `scripts/checks/integrations` sets: the module `OpenAPIRuntime` is the one in `Tests`,
// with declarations of the same shape, and swift-openapi-runtime is not fetched.
let usesShape = Context.environment["TERN_OPENAPI_SHAPE"] == "1"
let runtime: Target.Dependency =
    usesShape ? "OpenAPIRuntime" : .product(name: "OpenAPIRuntime", package: "swift-openapi-runtime")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")

let package = Package(
    name: "TernOpenAPITransport",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [.library(name: "TernOpenAPITransport", targets: ["TernOpenAPITransport"])],
    dependencies: [
        .package(name: "Tern", path: "../.."),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
    ],
    targets: [
        .target(
            name: "TernOpenAPITransport",
            dependencies: [runtime, httpTypes, .product(name: "Tern", package: "Tern")],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TernOpenAPITransportTests",
            dependencies: [
                "TernOpenAPITransport", runtime, httpTypes,
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
            ],
            swiftSettings: settings
        ),
    ]
)

if usesShape {
    // Without the settings, as in the real package: they change where its functions run.
    package.targets.append(.target(name: "OpenAPIRuntime", dependencies: [httpTypes], path: "Tests/OpenAPIRuntime"))
} else {
    package.dependencies.append(
        .package(url: "https://github.com/apple/swift-openapi-runtime.git", from: "1.8.0"))
}
