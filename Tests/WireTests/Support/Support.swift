import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Shared support of the wire tests: a server, a client with a session of its own, and the error that a call throws.

extension Session.Configuration {
    /// Returns a configuration for a test: without proxies of the environment, and with the changes of the test.
    static func test(_ change: (inout Self) -> Void = { _ in }) -> Self {
        var configuration = Self()
        configuration.proxies = .none
        change(&configuration)
        return configuration
    }
}

/// Runs a server, and a client whose session is its own: no test uses the pooled connections of another.
func withServer(
    on address: LoopbackServer.Address = .ipv4, configuration: Session.Configuration = .test(),
    _ handler: @escaping LoopbackServer.Handler, test: (LoopbackServer, Client) async throws -> Void
) async throws {
    let server = try LoopbackServer(on: address, handler: handler)
    defer { server.stop() }
    var configuration = configuration
    if case .unix(let path) = address { configuration.unixSocketPath = path }
    try await test(server, Client(baseURL: server.url, session: Session(configuration: configuration)))
}

/// Runs a server like `withServer(_:test:)`, which writes these bytes after reading the head and ends the connection.
func withScript(
    _ script: String, configuration: Session.Configuration = .test(),
    test: (LoopbackServer, Client) async throws -> Void
) async throws {
    try await withServer(configuration: configuration) { exchange in
        try exchange.write(script)
        exchange.close()
    } test: { server, client in
        try await test(server, client)
    }
}

/// Returns the error that a call throws. Records an issue if it throws none, or one of another type.
func failure<Value>(
    of operation: () async throws -> Value, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> NetworkError {
    do {
        _ = try await operation()
        Issue.record("nothing failed", sourceLocation: sourceLocation)
    } catch let error as NetworkError {
        return error
    }
    throw NothingFailed()
}

/// The error of `failure(of:)` for a call that succeeds.
struct NothingFailed: Error {}

extension Array where Element == UInt8 {
    init(_ text: String) { self = Array(text.utf8) }
}
