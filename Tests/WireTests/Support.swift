import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// What the wire tests share: a server, a client with a session of its own, and the error that a call ends with.

extension Session.Configuration {
    /// For a test: no proxies of the environment, and whatever else the test asks for.
    static func test(_ change: (inout Self) -> Void = { _ in }) -> Self {
        var configuration = Self()
        configuration.proxies = .none
        change(&configuration)
        return configuration
    }
}

/// Runs a server, and a client of it whose session is its own: no test meets another's pooled connections.
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

/// Like `withServer(_:test:)`, with a handler that writes these bytes after reading the head and ends the connection.
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

/// The error that a call ends with; a test failure when it ends with none, or with one that is not ours.
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

/// What `failure(of:)` throws when nothing failed.
struct NothingFailed: Error {}

extension Array where Element == UInt8 {
    init(_ text: String) { self = Array(text.utf8) }
}
