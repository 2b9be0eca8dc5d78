#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Checks HTTP/2 as agreed upon by ALPN.
@Suite("nginx: HTTP/2", .serialized, .enabled(if: Nginx.isExpected, Nginx.absence), .timeLimit(.minutes(1)))
struct NginxHTTP2Tests {
    @Test func versionIsAgreedUponByALPN() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let newest = try nginx.secureClient()
        let second = try await newest.response(for: newest.request(.get, "connection"), as: String.self)
        #expect(second.metrics.httpVersion == .http2 && second.head.version == .http2)
        #expect(second.value.hasSuffix(" HTTP/2.0"))
        let older = try nginx.secureClient { $0.allowsHTTP2 = false }
        let first = try await older.response(for: older.request(.get, "connection"), as: String.self)
        #expect(first.metrics.httpVersion == .http11 && first.head.version == .http11)
        #expect(first.value.hasSuffix(" HTTP/1.1"))
    }

    @Test func requestThatAvoidsHTTP2HasAConnectionOfItsOwn() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let client = try nginx.secureClient()
        let shared = try await client.response(for: client.request(.get, "connection"), as: String.self)
        var request = try client.request(.get, "connection")
        request.avoidsHTTP2 = true
        let own = try await client.response(for: request, as: String.self)
        #expect(shared.metrics.httpVersion == .http2 && own.metrics.httpVersion == .http11)
        #expect(!own.metrics.isReusedConnection)
        let again = try await client.response(for: client.request(.get, "connection"), as: String.self)
        #expect(again.metrics.httpVersion == .http2 && again.value == shared.value)
    }

    @Test func hundredStreamsShareFewConnections() async throws {
        let gate = LoopbackServer.Gate()
        let upstream = try LoopbackServer { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: exchange.request.target)
        }
        defer { upstream.stop() }
        let nginx = try await Nginx(upstream: upstream.port)
        defer { nginx.stop() }
        let client = try nginx.secureClient()
        let connection = try await client.get("connection", as: String.self)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<100 {
                group.addTask { try await client.get("via/\(number)", as: String.self) == "/\(number)" }
            }
            // All of them are at the server at the same time.
            try await upstream.wait { $0.requestsReceived == 100 }
            gate.open()
            for try await isRight in group { #expect(isRight) }
        }
        var connections: Set = [connection]
        for _ in 0..<10 { connections.insert(try await client.get("connection", as: String.self)) }
        #expect(connections.count == 1)
        #expect(try await client.response(for: client.request(.get, "hello")).metrics.isReusedConnection)
    }

    /// The limit applies to connections. Tasks that can be paused share one over HTTP/2.
    @Test func tasksWithHandlesObeyTheConnectionLimit() async throws {
        let gate = LoopbackServer.Gate()
        let upstream = try LoopbackServer { exchange in
            if exchange.request.path.hasPrefix("/slow") { try exchange.wait(for: gate) }
            try exchange.respond(text: exchange.request.target)
        }
        defer { upstream.stop() }
        let nginx = try await Nginx(upstream: upstream.port)
        defer { nginx.stop() }
        let client = try nginx.secureClient { $0.maximumConnectionsPerHost = 3 }
        #expect(try await client.response(for: client.request(.get, "via/first")).head.version == .http2)
        let tasks = (0..<8).map { client.task(.get, "via/slow\($0)") }
        try await upstream.wait { $0.requestsReceived == 9 }
        let other = try nginx.secureClient()
        for _ in 0..<20 { try await other.get("hello") }
        #expect(upstream.requestCount("/first") + upstream.requests.count { $0.target.hasPrefix("/slow") } == 9)
        gate.open()
        for (number, task) in tasks.enumerated() {
            #expect(try await task.value == Data("/slow\(number)".utf8))
        }
    }

    @Test func largeFileIsComplete() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let pattern = LoopbackServer.Pattern(count: 64 << 20, seed: 3)
        try nginx.makeFile("big", pattern.bytes())
        let client = try nginx.secureClient()
        let task = client.download("files/big", to: nginx.folder.appending(path: "goal"))
        let bytes = try Data(contentsOf: try await task.value, options: .alwaysMapped)
        #expect(bytes.count == pattern.count && pattern.matches(bytes))
        #expect(task.metrics?.httpVersion == .http2)
        #expect(task.metrics?.decodedBodyBytes == Int64(pattern.count))
    }

    @Test func bodiesOfAllKindsAreUploaded() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let client = try nginx.secureClient()
        let pattern = LoopbackServer.Pattern(count: 8 << 20, seed: 5)
        let source = nginx.folder.appending(path: "source")
        try Data(pattern.bytes()).write(to: source)
        let parts = AsyncStream { continuation in
            for start in stride(from: 0, to: pattern.count, by: 1 << 20) {
                continuation.yield(Data(pattern.bytes(in: start..<start + 1 << 20)))
            }
            continuation.finish()
        }
        let bodies: [(String, Request.Body)] = [
            ("data", .data(Data(pattern.bytes()))), ("file", .file(source)),
            ("stream", .stream(parts)),
        ]
        for (name, body) in bodies {
            let task = client.task(.put, "put/\(name)", body: body)
            _ = try await task.value
            #expect(task.metrics?.httpVersion == .http2)
            let stored = try Data(contentsOf: nginx.folder.appending(path: "put/\(name)"))
            #expect(stored.count == pattern.count && pattern.matches(stored), "\(name)")
        }
        #expect(try await client.post("echo", body: .text("hello"), as: String.self).hasSuffix(" hello"))
    }

    @Test func eachOfManyConcurrentTransfersGetsItsOwnBytes() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        for number in 0..<8 {
            try nginx.makeFile("\(number)", LoopbackServer.Pattern(count: 300_000, seed: number).bytes())
        }
        let client = try nginx.secureClient()
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let body = try await client.get("files/\(number % 8)")
                    return LoopbackServer.Pattern(count: 300_000, seed: number % 8).matches(body)
                }
            }
            for try await isRight in group { #expect(isRight) }
        }
    }

    // MARK: Restarts of the server

    @Test(arguments: [true, false]) func safeRequestsSurviveARestartOfTheServer(http2: Bool) async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let client = try nginx.secureClient { $0.allowsHTTP2 = http2 }
        for _ in 0..<3 {
            try await withThrowingTaskGroup { group in
                for _ in 0..<20 { group.addTask { _ = try await client.get("hello") } }
                try await group.waitForAll()
            }
            try await nginx.restart()
        }
        #expect(try await client.get("hello", as: String.self) == "hello")
    }

    @Test(arguments: [true, false]) func restartOfTheServerNeverRepeatsAPost(http2: Bool) async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let client = try nginx.secureClient { $0.allowsHTTP2 = http2 }
        for round in 0..<5 {
            try await client.get("hello")
            try await nginx.restart()
            do {
                _ = try await client.post("echo?\(round)", body: .text("once"), as: String.self)
            } catch {
                #expect(error.kind == .connectionLost)
            }
            try await client.get("hello")
            #expect(try nginx.accessLog().filter { $0.hasPrefix("POST /echo?\(round) ") }.count <= 1)
        }
    }

    @Test(arguments: [true, false]) func endOfTheServerFailsRunningTransfersOnly(http2: Bool) async throws {
        let gate = LoopbackServer.Gate()
        let upstream = try LoopbackServer { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "late")
        }
        defer { upstream.stop() }
        let nginx = try await Nginx(upstream: upstream.port)
        defer { nginx.stop() }
        let client = try nginx.secureClient { $0.allowsHTTP2 = http2 }
        let tasks = (0..<10).map { client.task(.post, "via/\($0)") }
        try await upstream.wait { $0.requestsReceived == 10 }
        try await nginx.restart()
        for task in tasks {
            let error = try await failure { try await task.value }
            #expect(error.kind == .connectionLost, "\(error)")
        }
        #expect(try await client.get("hello", as: String.self) == "hello")
    }
}
#endif
