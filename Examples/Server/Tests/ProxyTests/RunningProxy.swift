import Foundation
import Hummingbird
import NIOCore
import Synchronization
import Tern
import TernTesting

@testable import proxy

/// Runs a proxy before the origin at a port, and calls a closure with a client of the proxy that accepts every status.
func withProxy(
    before origin: Int, _ operation: @Sendable @escaping (Client) async throws -> Void
) async throws {
    let (ports, continuation) = AsyncStream<Int>.makeStream()
    // Longer than the tests: a request that ends early ends for its own reason.
    let proxy = try Proxy(origin: "http://127.0.0.1:\(origin)", idleLimit: .seconds(600))
    var application = proxy.application(port: 0) { channel in
        continuation.yield(channel.localAddress?.port ?? 0)
    }
    application.logger.logLevel = .critical
    try await withThrowingTaskGroup(of: Void.self) { [application] group in
        group.addTask { try await application.run() }
        group.addTask {
            guard let port = await ports.first(where: { _ in true }) else { return }
            var configuration = Session.Configuration()
            configuration.decompresses = false
            configuration.redirects = .stop
            configuration.validation = .any
            configuration.timeouts.idle = .seconds(600)
            let session = Session(configuration: configuration)
            try await operation(try Client(baseURL: "http://127.0.0.1:\(port)", session: session))
        }
        // The server runs until it is cancelled, so the first to end is the operation, or a failure.
        try await group.next()
        group.cancelAll()
    }
}

/// Counts by name, from any thread.
final class Counters: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    func add(_ count: Int, to name: String) { counts.withLock { $0[name, default: 0] += count } }

    subscript(name: String) -> Int { counts.withLock { $0[name, default: 0] } }
}
