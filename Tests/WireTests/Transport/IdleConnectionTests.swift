#if os(Linux) && !TERN_URLSESSION
import Foundation
import TernTesting
import Testing

@testable import Tern

/// Checks that unsolicited bytes on a pooled HTTP/1 connection are never taken as the response to the next request: the
/// connection is closed, and another one is used.
@Suite("Wire: bytes on idle connections", .timeLimit(.minutes(1)))
struct IdleConnectionTests {
    /// The bytes after the first response.
    enum Unasked: String, CaseIterable, Sendable {
        case response, chunkedResponse, timeout, half, lineEnd, interim

        var bytes: String {
            switch self {
            case .response: "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked"
            case .chunkedResponse: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nunasked\r\n0\r\n\r\n"
            case .timeout: "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            case .half: "HTTP/1.1 200 OK\r\nContent-Le"
            case .lineEnd: "\r\n"
            case .interim: "HTTP/1.1 103 Early Hints\r\n\r\n"
            }
        }
    }

    /// The way in which the first response is written, and the moment of the unsolicited bytes.
    enum Moment: String, CaseIterable, Sendable {
        /// In one write with the response.
        case together, afterChunks, afterNoBody
        /// In one write with the body, of which the client reads only its length.
        case withBody
        /// In one write with a large body, which the client reads in place.
        case withLargeBody
        /// After the response has been read.
        case later
    }

    /// Answers the first request of each connection with unsolicited bytes after the response, and then each request
    /// with its path.
    private final class Server: Sendable {
        let unasked: Unasked
        let moment: Moment
        let isRead = LoopbackServer.Gate()
        let isSent = LoopbackServer.Gate()

        init(_ unasked: Unasked, _ moment: Moment) {
            self.unasked = unasked
            self.moment = moment
        }

        func serve(_ exchange: LoopbackServer.Exchange) throws {
            try exchange.drainBody()
            guard exchange.request.path.hasSuffix("/first") else {
                return try exchange.respond(text: exchange.request.path)
            }
            defer { isSent.open() }
            switch moment {
            case .together:
                try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst" + unasked.bytes)
            case .afterChunks:
                let body = "5\r\nfirst\r\n0\r\n\r\n"
                try exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + unasked.bytes)
            case .afterNoBody:
                try exchange.write("HTTP/1.1 204 No Content\r\n\r\n" + unasked.bytes)
            case .withBody:
                try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
                try exchange.waitUntilReceived()
                try exchange.write("first" + unasked.bytes)
            case .withLargeBody:
                try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n")
                try exchange.waitUntilReceived()
                try exchange.write(String(repeating: "x", count: 40_000) + unasked.bytes)
            case .later:
                try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
                try exchange.wait(for: isRead)
                try exchange.write(unasked.bytes)
            }
            if unasked == .timeout { exchange.close() }
        }
    }

    @Test(arguments: Unasked.allCases, Moment.allCases)
    func unsolicitedBytesAreNotAResponse(unasked: Unasked, moment: Moment) async throws {
        for method in [Request.Method.get, .post, .put] {
            let script = Server(unasked, moment)
            try await withServer {
                try script.serve($0)
            } test: { server, client in
                try await client.get("first")
                script.isRead.open()
                try await script.isSent.wait()
                for number in 0..<3 {
                    let body: Request.Body = method == .get ? .none : .text("body \(number)")
                    let request = try client.request(method, "next\(number)", body: body)
                    let response = try await client.response(for: request, as: String.self)
                    #expect(response.value == "/next\(number)")
                    #expect(response.metrics.transactions == 1)
                }
                // Each request was received once, and the connection of its response was used again.
                #expect(server.requests.map(\.target) == ["/first", "/next0", "/next1", "/next2"])
                #expect(server.counts.acceptedConnections <= 2)
                if [.later, .withBody, .withLargeBody].contains(moment) {
                    #expect(server.counts.acceptedConnections == 2)
                }
            }
        }
    }

    /// A waiting request takes over the connection in the same turn of the loop in which the request before it ends.
    @Test func queuedRequestDoesNotReceiveUnsolicitedBytes() async throws {
        let script = Server(.response, .withBody)
        let isReached = LoopbackServer.Gate()
        let goesOn = LoopbackServer.Gate()
        try await withServer(configuration: .test { $0.maximumConnectionsPerHost = 1 }) { exchange in
            if exchange.request.path == "/first" {
                isReached.open()
                try exchange.wait(for: goesOn)
            }
            try script.serve(exchange)
        } test: { server, client in
            let first = client.task(.get, "first")
            first.resume()
            try await isReached.wait()
            let queued = (0..<3).map { client.task(.post, "queued\($0)", as: String.self) }
            for task in queued { task.resume() }
            goesOn.open()
            #expect(try await first.value == Data("first".utf8))
            for (number, task) in queued.enumerated() { #expect(try await task.value == "/queued\(number)") }
            #expect(server.requests.count == 4 && server.counts.acceptedConnections == 2)
        }
    }

    @Test func unixSocketIsCheckedForUnsolicitedBytes() async throws {
        let path = "/tmp/tern-\(UUID().uuidString.prefix(8)).sock"
        let script = Server(.response, .later)
        try await withServer(on: .unix(path: path)) {
            try script.serve($0)
        } test: { server, client in
            #expect(try await client.get("before", as: String.self) == "/before")
            try await client.get("first")
            script.isRead.open()
            try await script.isSent.wait()
            for number in 0..<3 { #expect(try await client.get("next\(number)", as: String.self) == "/next\(number)") }
            #expect(server.counts.acceptedConnections == 2)
        }
    }

    @Test func proxiedConnectionIsCheckedForUnsolicitedBytes() async throws {
        let script = Server(.timeout, .later)
        try await withServer { exchange in
            try exchange.drainBody()
            if exchange.request.target.hasSuffix("/first") { return try script.serve(exchange) }
            try exchange.respond(text: exchange.request.target)
        } test: { proxy, _ in
            let configuration = Session.Configuration.test {
                $0.proxies = .only(Proxy(.http, host: "127.0.0.1", port: UInt16(proxy.port)))
            }
            let session = Session(configuration: configuration)
            _ = try await session.response(for: Request(.get, "http://somewhere.invalid/first"))
            script.isRead.open()
            try await script.isSent.wait()
            let request = try Request(.post, "http://elsewhere.invalid/next", body: .text("x"))
            let response = try await session.response(for: request, decode: .string)
            #expect(response.value == "http://elsewhere.invalid/next" && proxy.counts.requestsReceived == 2)
        }
    }

    // MARK: TLS

    @Test(.enabled(if: Nginx.isExpected, Nginx.absence), arguments: [false, true])
    func aCleanConnectionOverTLSIsUsedAgain(http2: Bool) async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let client = try nginx.secureClient { $0.allowsHTTP2 = http2 }
        var connections: Set<String> = []
        for number in 0..<10 {
            let response = try await client.response(for: client.request(.get, "connection"), as: String.self)
            #expect(response.metrics.isReusedConnection == (number > 0))
            connections.insert(response.value)
        }
        #expect(connections.count == 1)
    }

    /// The second response arrives in one record with the end of the first: OpenSSL can hold it, and the socket none of
    /// it.
    @Test(.enabled(if: Nginx.isExpected, Nginx.absence))
    func bytesBufferedByOpenSSLAreDetected() async throws {
        try await inTestFolder { folder in
            let chain = try TestChain(in: folder)
            let server = try await RawTLSServer(chain, "direct")
            let configuration = Session.Configuration.test {
                $0.authorities = .file(chain.path("root.pem"))
                $0.allowsHTTP2 = false
            }
            let session = Session(configuration: configuration)
            let first = session.stream(try Request(.get, server.url + "first"))
            async let head = first.response
            try await server.waits(for: "GET /first")
            try server.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
            _ = try await head
            try server.send("firstHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked")
            var body = Data()
            for try await chunk in first.chunks { body += chunk }
            #expect(String(decoding: body, as: UTF8.self) == "first")
            let next = session.task(for: try Request(.post, server.url + "next", body: .text("x")), decode: .string)
            next.resume()
            try await server.waits(for: "POST /next")
            try server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext")
            let response = try await next.value
            #expect(response.value == "next" && !response.metrics.isReusedConnection)
        }
    }
}

/// Runs `openssl s_server` on a free port of 127.0.0.1, which sends only the texts that the test gives it. It serves
/// one connection after another.
private final class RawTLSServer: Sendable {
    let url: String
    private let child: Child
    private let output: String
    private let input: Int32

    init(_ chain: TestChain, _ name: String) async throws {
        output = chain.path("raw.out")
        let pipe = chain.path("raw.in")
        guard unsafe mkfifo(pipe, 0o600) == 0 else { throw Child.Failure(description: "no pipe: errno \(errno)") }
        // Opened for both directions, so that neither side waits for the other to open it.
        input = unsafe open(pipe, O_RDWR | O_CLOEXEC)
        let command = "exec openssl s_server -accept 127.0.0.1:0 -cert \(name).pem -key \(name).key < raw.in"
        child = try Child(["/bin/sh", "-c", "cd '\(chain.folder)'; \(command)"], output: output)
        let port = try await Child.find(in: output, within: 30) { said in
            let line = said.split(separator: "\n").first { $0.hasPrefix("ACCEPT") }
            return line?.split(separator: ":").last.flatMap { Int($0) }
        }
        url = "https://127.0.0.1:\(port)/"
    }

    deinit { close(input) }

    /// Returns when the server has received this text.
    func waits(for text: String) async throws {
        _ = try await Child.find(in: output, within: 30) { $0.contains(text) ? true : nil }
    }

    /// Sends a text in one record.
    func send(_ text: String) throws {
        let bytes = Array(text.utf8)
        let sent = unsafe write(input, bytes, bytes.count)
        guard sent == bytes.count else { throw Child.Failure(description: "nothing was sent: errno \(errno)") }
    }
}
#endif
