#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// An HTTP/1.1 server on the loopback interface, for tests that need real sockets, splits and resets. A closure writes
/// the responses, byte by byte if needed.
///
/// ```swift
/// let server = try LoopbackServer { exchange in
///     switch exchange.request.path {
///     case "/hello": try exchange.respond(text: "hello")
///     case "/torn": try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"); exchange.reset()
///     default: try exchange.respond(status: 404)
///     }
/// }
/// defer { server.stop() }
/// let client = Client(baseURL: server.url)
/// ```
///
/// Each connection has its own thread, on which the closure runs once per request and may block. Nothing runs on
/// Swift's cooperative pool. Connections stay open between requests unless the client or the closure ends them. 300
/// connections at once are cheap: a waiting one costs a thread's stack and 16 KiB.
///
/// A server stops when it is released. Keep it for the length of a test with `defer { server.stop() }`.
public final class LoopbackServer: Sendable {
    /// A closure that answers one request on the connection's thread. If it returns without writing, the client gets a
    /// 500. If it throws, the client gets a 500 with the text of the error, or the end of the connection if bytes were
    /// already sent.
    public typealias Handler = @Sendable (_ exchange: Exchange) throws -> Void

    /// Header fields in order, including duplicates: `[("Content-Type", "text/plain"), ("Set-Cookie", "a=b")]`.
    public typealias Fields = [(name: String, value: String)]

    /// The address of a server. Other machines cannot reach it.
    public enum Address: Sendable, Hashable {
        /// The address 127.0.0.1.
        case ipv4
        /// The address ::1.
        case ipv6
        /// A Unix-domain socket at this path of at most 103 bytes. The server replaces an existing file, and removes
        /// the socket at the end.
        case unix(path: String)
    }

    /// The address of the server.
    public let address: Address

    /// The TCP port; 0 for a Unix-domain socket.
    public let port: Int

    /// The root URL of the server, such as `http://127.0.0.1:54321/`; `http://localhost/` for a Unix-domain socket.
    public let baseURL: URL

    private let core: LoopbackCore

    /// Starts a server. It answers as soon as this returns.
    ///
    /// - Parameters:
    ///   - address: The address to listen on.
    ///   - port: The TCP port; 0 lets the system choose a free one.
    ///   - acceptsConnections: False for a listener with a full queue: connection attempts are never answered, as with
    ///     a host behind a silent firewall, to test a connect timeout. It takes 0.1 s to set up.
    ///   - requestLogLimit: The number of `requests` to keep, newest first; 0 for none, which is faster under load.
    ///   - handler: The closure that answers a request.
    public convenience init(
        on address: Address = .ipv4, port: Int = 0, acceptsConnections: Bool = true, requestLogLimit: Int = 1_000,
        handler: @escaping Handler
    ) throws(Failure) {
        try self.init(
            on: address, port: port, acceptsConnections: acceptsConnections, requestLogLimit: requestLogLimit,
            connectionLimit: .max, handler: handler)
    }

    /// - Parameter connectionLimit: The number of connections that are open at a time. Further ones are closed.
    package init(
        on address: Address, port: Int, acceptsConnections: Bool, requestLogLimit: Int, connectionLimit: Int,
        handler: @escaping Handler
    ) throws(Failure) {
        var listener = try LoopbackListener(address, port: port, backlog: acceptsConnections ? 1_024 : 0)
        if !acceptsConnections { try listener.fillQueue(address) }
        let text: String
        switch address {
        case .ipv4: text = "http://127.0.0.1:\(listener.port)/"
        case .ipv6: text = "http://[::1]:\(listener.port)/"
        case .unix: text = "http://localhost/"
        }
        guard let url = URL(string: text) else { throw Failure("the address is not a URL: \(text)") }
        self.address = address
        self.port = listener.port
        baseURL = url
        core = try LoopbackCore(
            listener, isIPv6: address == .ipv6, logLimit: requestLogLimit, connectionLimit: connectionLimit,
            handler: handler)
        if acceptsConnections { try core.start() }
    }

    deinit { stop() }

    /// The root URL of the server, the same as `baseURL`.
    public var url: URL { baseURL }

    /// Returns the URL of a path on this server with an optional query: `server.url("/items?page=2")`. Percent-encodes
    /// invalid characters.
    public func url(_ pathAndQuery: String) -> URL {
        let relative = pathAndQuery.hasPrefix("/") ? String(pathAndQuery.dropFirst()) : pathAndQuery
        return URL(string: baseURL.absoluteString + relative) ?? baseURL.appending(path: relative)
    }

    /// Closes the listener and all connections, wakes waiting handlers, and returns when the server's threads have
    /// ended. Returns at once in a handler, and after 5 seconds if a handler blocks for reasons of its own. Stopping
    /// again has no effect.
    public func stop() {
        guard core.stop(), case .unix(let path) = address else { return }
        _ = unsafe unlink(path)
    }

    /// Closes each connection that waits for a request, like a server whose keep-alive time has passed. A connection
    /// counts as idle shortly after its client has the response: await `wait { $0.idleConnections == 1 }` before.
    public func closeIdleConnections() { core.closeIdleConnections() }

    /// The counts of the server.
    public var counts: Counts { core.counters.snapshot }

    /// The newest requests in the order of arrival, including unanswered ones. A test asserts here that a request was
    /// received exactly once.
    public var requests: [LoggedRequest] { core.requests }

    /// Empties `requests`, without changing the counts.
    public func clearRequests() { core.clearRequests() }

    /// Returns when `condition` holds for the counts. It is evaluated at each change under a lock, so it must be fast.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func wait(until condition: @escaping @Sendable (Counts) -> Bool) async throws(CancellationError) {
        try await core.wait(until: condition)
    }

    private static let refusing = Result { () throws(Failure) in
        try LoopbackListener(.ipv4, port: 0, backlog: nil)
    }

    /// Returns a port of 127.0.0.1 that refuses every connection. This process holds the port and never listens.
    public static func refusingPort() throws(Failure) -> Int { try refusing.get().port }
}

extension LoopbackServer {
    /// The failure of a server or an exchange: a failed system call, a lost connection, or an invalid request body.
    public struct Failure: Error, Sendable, CustomStringConvertible {
        /// A description of the failure.
        public let reason: String

        /// The error number of the system, if the system reported the failure.
        public let code: Int32?

        /// Whether the connection is lost, so that no response can be sent.
        let isConnectionLoss: Bool

        /// The reason, and the system's description of the error number.
        public var description: String {
            guard let code else { return reason }
            return "\(reason): \(System.message(of: code)) (\(code))"
        }

        init(_ reason: String, code: Int32? = nil, isConnectionLoss: Bool = false) {
            self.reason = reason
            self.code = code
            self.isConnectionLoss = isConnectionLoss
        }

        static func connection(_ reason: String, code: Int32? = nil) -> Failure {
            Failure(reason, code: code, isConnectionLoss: true)
        }
    }
}
