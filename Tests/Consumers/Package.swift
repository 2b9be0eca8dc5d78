// swift-tools-version: 6.2
import PackageDescription

// A package of a user of Tern. The checks set TERN_URLS and TERN_VERSION, and so add Tern and two packages of
// Integrations as a user does, by URL and version (scripts/checks/consumers); without them the checkout around this
// folder is used.
let dependencies: [Package.Dependency]
var integrations: [Target] = []
if let urls = Context.environment["TERN_URLS"], let tag = Context.environment["TERN_VERSION"],
    let version = Version(tag)
{
    dependencies = ["tern", "tern-http-types", "tern-shared-cache"].map {
        .package(url: "\(urls)/\($0).git", from: version)
    }
    integrations = [
        .executableTarget(
            name: "Integrations",
            dependencies: [
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernHTTPTypes", package: "tern-http-types"),
                .product(name: "TernSharedCache", package: "tern-shared-cache"),
            ],
            path: "Integrations"
        )
    ]
} else {
    dependencies = [.package(name: "Tern", path: "../..")]
}

let package = Package(
    name: "Consumers",
    platforms: [.macOS(.v15)],
    dependencies: dependencies,
    targets: integrations + [
        // A program that imports only Tern: it loads the libraries that every program with Tern loads.
        // scripts/static-example links them into it.
        .executableTarget(
            name: "Linkage",
            dependencies: [.product(name: "Tern", package: "Tern")],
            path: "Linkage"
        ),
        // One source for two programs: user code must run off the loop, whatever the consumer's default for nonisolated
        // is.
        .executableTarget(
            name: "IsolationWithNonsending",
            dependencies: [
                .product(name: "Tern", package: "Tern"), .product(name: "TernTesting", package: "Tern"),
            ],
            path: "Isolation/WithNonsending",
            swiftSettings: [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]
        ),
        .executableTarget(
            name: "IsolationWithoutNonsending",
            dependencies: [
                .product(name: "Tern", package: "Tern"), .product(name: "TernTesting", package: "Tern"),
            ],
            path: "Isolation/WithoutNonsending"
        ),
        // A network that comes and goes, in a namespace of its own, run by scripts/checks/reachability.
        .executableTarget(
            name: "Reachability",
            dependencies: [.product(name: "Tern", package: "Tern")],
            path: "Reachability"
        ),
        // Requests whose name look-up never ends, in a network of its own, run by scripts/checks/resolver.
        .executableTarget(
            name: "Resolver",
            dependencies: [
                .product(name: "Tern", package: "Tern"), .product(name: "TernTesting", package: "Tern"),
            ],
            path: "Resolver"
        ),
    ]
)
