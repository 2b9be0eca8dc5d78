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

/// An HTTP/1.1 server on this machine's loopback, whose answers a closure writes, byte by byte if it wants to: for
/// tests that need real sockets, real splits, real resets.
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
/// Every connection has a thread of its own, on which the closure runs once per request and may block; nothing runs on
/// Swift's cooperative pool. Connections stay open between requests unless the client or the closure ends them.
/// 300 connections at once are cheap: a waiting one costs a thread's stack and 16 KiB.
///
/// A server that is dropped stops. Keep it for the length of a test with `defer { server.stop() }`.
public final class LoopbackServer: Sendable {
    /// Answers one request, on the connection's own thread. When it returns without writing, the client gets a 500;
    /// when it throws, a 500 with the error's text if nothing was written, and the end of the connection otherwise.
    public typealias Handler = @Sendable (_ exchange: Exchange) throws -> Void

    /// Header fields in order, duplicates kept: `[("Content-Type", "text/plain"), ("Set-Cookie", "a=b")]`.
    public typealias Fields = [(name: String, value: String)]

    /// Where a server listens. Nothing outside this machine reaches it.
    public enum Address: Sendable, Hashable {
        /// 127.0.0.1.
        case ipv4
        /// ::1.
        case ipv6
        /// A Unix-domain socket at this path (at most 103 bytes); what is there is replaced, and removed at the end.
        case unix(path: String)
    }

    /// Where the server listens.
    public let address: Address

    /// The TCP port it listens on; 0 for a Unix-domain socket.
    public let port: Int

    /// The root of the server, such as `http://127.0.0.1:54321/`; `http://localhost/` for a Unix-domain socket.
    public let baseURL: URL

    private let core: LoopbackCore

    /// Starts a server; it answers from the moment this returns.
    /// - Parameters:
    ///   - address: where it listens.
    ///   - port: the TCP port; 0 has the system choose a free one.
    ///   - acceptsConnections: false for a listener whose queue is full: connecting to it is never answered, as with a
    ///     host behind a silent firewall, so that a connect timeout can be tested. It takes 0.1 s to set up.
    ///   - requestLogLimit: how many of the newest `requests` are kept; 0 for none, which is faster under load.
    ///   - handler: answers one request.
    public init(
        on address: Address = .ipv4, port: Int = 0, acceptsConnections: Bool = true, requestLogLimit: Int = 1_000,
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
        guard let url = URL(string: text) else { throw Failure("no URL: \(text)") }
        self.address = address
        self.port = listener.port
        baseURL = url
        core = try LoopbackCore(listener, isIPv6: address == .ipv6, logLimit: requestLogLimit, handler: handler)
        if acceptsConnections { try core.start() }
    }

    deinit { stop() }

    /// The root of the server: `baseURL`.
    public var url: URL { baseURL }

    /// The URL of a path on this server, with a query if it has one: `server.url("/items?page=2")`. Characters that a
    /// URL cannot hold are percent-encoded.
    public func url(_ pathAndQuery: String) -> URL {
        let relative = pathAndQuery.hasPrefix("/") ? String(pathAndQuery.dropFirst()) : pathAndQuery
        return URL(string: baseURL.absoluteString + relative) ?? baseURL.appending(path: relative)
    }

    /// Closes the listener and every connection, wakes handlers that wait, and returns when the server's threads have
    /// ended: at once in a handler, and after 5 seconds if a handler blocks on something of its own. Stopping twice
    /// does nothing.
    public func stop() {
        guard core.stop(), case .unix(let path) = address else { return }
        _ = unsafe unlink(path)
    }

    /// Ends every connection that waits for a request, as a server does whose keep-alive time is over. A connection
    /// counts as idle a moment after its client has the answer: await `wait { $0.idleConnections == 1 }` before.
    public func closeIdleConnections() { core.closeIdleConnections() }

    /// What the server has done so far, and holds open now.
    public var counts: Counts { core.counters.snapshot }

    /// The newest requests in the order of their arrival, also those that were never answered: a test asserts here
    /// that a request was received exactly once.
    public var requests: [LoggedRequest] { core.requests }

    /// Empties `requests`; the counts go on.
    public func clearRequests() { core.clearRequests() }

    /// Returns once `condition` holds for the counts; it is asked at each change of them, quickly please: under a lock.
    /// - Throws: `CancellationError` when the task is cancelled.
    public func wait(until condition: @escaping @Sendable (Counts) -> Bool) async throws(CancellationError) {
        try await core.wait(until: condition)
    }

    private static let refusing = Result { () throws(Failure) in
        try LoopbackListener(.ipv4, port: 0, backlog: nil)
    }

    /// A port of 127.0.0.1 at which every connection is refused: this process holds it, and never listens.
    public static func refusingPort() throws(Failure) -> Int { try refusing.get().port }
}
