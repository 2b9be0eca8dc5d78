// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that the other examples build without a server framework.
let package = Package(
    name: "Server",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "Tern", path: "../.."),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.0"),
    ],
    targets: [
        .executableTarget(
            name: "server",
            dependencies: [
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Tern", package: "Tern"),
            ]
        ),
        .executableTarget(
            name: "proxy",
            dependencies: [
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "Tern", package: "Tern"),
            ]
        ),
        .testTarget(
            name: "ProxyTests",
            dependencies: [
                "proxy",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "Tern", package: "Tern"),
                .product(name: "TernTesting", package: "Tern"),
            ]
        ),
    ]
)
