#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Calls servers of several authors over HTTP/1.1 and HTTP/2. Each check runs in every way in which the server can be
/// reached.
@Suite("servers of other authors", .serialized, .timeLimit(.minutes(2)))
struct PeerTests {
    private static let kinds = PeerServer.Kind.allCases.filter(\.isExpected)
    private static let missing = PeerServer.Kind.allCases.filter { !kinds.contains($0) }.map(\.rawValue)

    @Test(.enabled(if: missing.isEmpty, "not installed: \(missing); `make test` installs them"))
    func everyServerIsInstalled() { #expect(Self.kinds == PeerServer.Kind.allCases) }

    /// Starts a server, and runs a test for each way to reach it. An error of the test has the server's output with it,
    /// and its exit status.
    private func withPeer(
        _ kind: PeerServer.Kind, _ test: (PeerServer, PeerServer.Access) async throws -> Void
    ) async throws {
        for attempt in 1... {
            let peer = try await PeerServer(kind)
            defer { peer.stop() }
            do {
                for access in peer.accesses { try await test(peer, access) }
                return
            } catch {
                let output = peer.end()
                // A program that a signal of its own ended (SIGILL, SIGABRT, SIGBUS, SIGSEGV) says nothing about Tern.
                let hasCrashed = [132, 134, 135, 139].contains { output.contains("ended with status \($0)\n") }
                guard hasCrashed, attempt < 3 else {
                    // One line, because a list of failures shows the first one.
                    let said = output.replacing("\n", with: " | ")
                    throw Child.Failure(description: "\(error); \(kind.rawValue) wrote: \(said)")
                }
            }
        }
    }

    @Test(arguments: kinds) func responsesOfAllKindsArrive(kind: PeerServer.Kind) async throws {
        try await withPeer(kind) { peer, access in
            let client = try peer.client(access)
            try await checkBodies(of: peer, client: client, access: access)
            try await checkConditions(client, access)
            try await checkUploads(to: peer, client: client, access: access)
            if kind.isComplete { try await checkForwarded(client, access) }
        }
    }

    private func checkBodies(of peer: PeerServer, client: Client, access: PeerServer.Access) async throws {
        let small = try await client.response(for: client.request(.get, "files/small"), as: String.self)
        #expect(small.value == "hello" && small.metrics.httpVersion == access.version, "\(access)")
        #expect(!small.metrics.isReusedConnection && (small.metrics.tls == nil) == (access == .plain), "\(access)")
        let big = try await client.response(for: client.request(.get, "files/big"))
        #expect(big.value.count == PeerServer.big.count && PeerServer.big.matches(big.value), "\(access)")
        #expect(big.metrics.isReusedConnection, "\(access)")
        // A connection stays usable after an error of the application.
        let missing = try await failure { try await client.get("files/missing") }
        #expect(missing.kind == .status, "\(access)")
        #expect(try await client.response(for: client.request(.get, "files/small")).metrics.isReusedConnection)
        guard peer.kind.isComplete else { return }
        let packed = try await client.response(for: client.request(.get, "packed/text.txt"), as: String.self)
        #expect(packed.value == PeerServer.text && packed.headers["Content-Encoding"] == "gzip", "\(access)")
    }

    private func checkConditions(_ client: Client, _ access: PeerServer.Access) async throws {
        let head = try await client.head("files/big")
        #expect(head.status == 200 && head.headers["Content-Length"] == "\(PeerServer.big.count)", "\(access)")
        let condition: Headers
        if let etag = head.headers["ETag"] {
            condition = ["If-None-Match": etag]
        } else {
            condition = ["If-Modified-Since": try #require(head.headers["Last-Modified"])]
        }
        let unchanged = try await failure { try await client.get("files/big", headers: condition) }
        #expect(unchanged.status == 304 && unchanged.body.isEmpty, "\(access)")
        #expect(try await client.get("files/small", as: String.self) == "hello", "\(access)")
    }

    private func checkUploads(to peer: PeerServer, client: Client, access: PeerServer.Access) async throws {
        let known = try await client.post("via/echo", body: .text("a known length"), as: String.self)
        #expect(known == "a known length", "\(access)")
        let bytes = Data(PeerServer.big.bytes())
        #expect(try await echo(of: bytes, from: peer, client: client, access: access) == bytes, "\(access)")
        // The library of caddy 2.6.2 (quic-go) takes a request without a Content-Length for one without a body.
        if access == .http3 { return }
        let parts = AsyncStream { continuation in
            for start in stride(from: 0, to: bytes.count, by: 50_000) {
                continuation.yield(bytes[start..<min(start + 50_000, bytes.count)])
            }
            continuation.finish()
        }
        #expect(try await client.post("via/echo", body: .stream(parts)) == bytes, "\(access)")
        let empty = AsyncStream<Data> { $0.finish() }
        #expect(try await client.post("via/echo", body: .stream(empty)).isEmpty, "\(access)")
    }

    /// Posts bytes of a known length until the server does not cut its response off. Only caddy does
    /// (`PeerServer.cutOffResponses`), and it says so.
    private func echo(
        of bytes: Data, from peer: PeerServer, client: Client, access: PeerServer.Access
    ) async throws -> Data {
        while true {
            let before = peer.cutOffResponses
            do throws(NetworkError) {
                return try await client.post("via/echo", body: .data(bytes))
            } catch {
                guard access != .http2, peer.cutOffResponses > before else { throw error }
                #expect(error.kind == .truncatedBody && error.status == 200, "\(access): \(error)")
            }
        }
    }

    private func checkForwarded(_ client: Client, _ access: PeerServer.Access) async throws {
        let chunked = try await client.response(for: client.request(.get, "via/chunked"))
        #expect(PeerServer.big.matches(chunked.value) && chunked.value.count == PeerServer.big.count, "\(access)")
        #expect(chunked.headers["Content-Length"] == nil, "\(access)")
        let empty = try await client.response(for: client.request(.get, "via/empty"))
        #expect(empty.status == 204 && empty.value.isEmpty, "\(access)")
        let early = try await failure { try await client.get("via/early") }
        #expect(early.kind == .connectionLost || early.kind == .truncatedBody, "\(access): \(early)")
        #expect(try await client.get("files/small", as: String.self) == "hello", "\(access)")
    }

    @Test(arguments: kinds) func hundredRequestsAtOnceGetTheirOwnBytes(kind: PeerServer.Kind) async throws {
        try await withPeer(kind) { peer, access in
            let client = try peer.client(access)
            try await client.get("files/small")
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        let text = "request \(number)"
                        return try await client.post("via/echo", body: .text(text), as: String.self) == text
                    }
                }
                for try await isRight in group { #expect(isRight, "\(access)") }
            }
            guard access != .plain, access != .secure, kind.isConcurrent else { return }
            // The server answers when it has all hundred.
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<100 { group.addTask { try await client.get("via/together", as: String.self) } }
                for try await text in group { #expect(text == "together") }
            }
            #expect(try await client.response(for: client.request(.get, "files/small")).metrics.isReusedConnection)
        }
    }

    @Test(arguments: kinds) func restartRepeatsAGetAndNeverAPost(kind: PeerServer.Kind) async throws {
        try await withPeer(kind) { peer, access in
            let client = try peer.client(access)
            try await client.get("files/small")
            try await peer.restart()
            #expect(try await client.get("files/small", as: String.self) == "hello", "\(access)")
            try await peer.restart()
            let path = "via/echo?\(access)"
            do throws(NetworkError) {
                _ = try await client.post(path, body: .text("once"), as: String.self)
            } catch {
                #expect(error.kind == .connectionLost, "\(access): \(error)")
            }
            #expect(peer.count("POST", "/echo?\(access)") <= 1, "\(access)")
            #expect(try await client.get("files/small", as: String.self) == "hello", "\(access)")
        }
    }

    // HAProxy 2.6.12 can stop a connection for good when a stream uses up its window while another one is being sent:
    // its `show fd` then has no stream in wait for its window (`.fctl_cnt=0`), one that waits to be sent
    // (`.send_cnt=1`), and an empty output. It answers PING, and sends no DATA until the first stream has a window
    // again. A client of another author (h2 4.4.1 for Python) with the same windows finds the same in 3 of 1,000
    // attempts. No event tells, so that HAProxy is left out over HTTP/2.
    @Test(arguments: kinds) func pausedStreamLeavesOthersRunning(kind: PeerServer.Kind) async throws {
        try await withPeer(kind) { peer, access in
            if access.version == .http2, [.haproxyAndNginx, .haproxyAndApache].contains(kind) { return }
            let client = try peer.client(access)
            try await client.get("files/small")
            let stream = client.stream("files/large")
            var reader = Reader(stream)
            try await reader.read(upTo: 1)
            stream.task.pause()
            for _ in 0..<3 {
                #expect(PeerServer.big.matches(try await client.get("files/big")), "\(access)")
            }
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<20 {
                    group.addTask { try await client.get("files/small", as: String.self) == "hello" }
                }
                for try await isRight in group { #expect(isRight, "\(access)") }
            }
            stream.task.resume()
            try await reader.read(upTo: .max)
            #expect(reader.offset == PeerServer.large.count && reader.isRight, "\(access)")
            #expect(try await stream.response.version == access.version, "\(access)")
        }
    }

    /// A server that ends gracefully says so: GOAWAY over HTTP/2, and the end of idle connections over HTTP/1.1.
    @Test(arguments: kinds.filter { $0.gracefulSignal != nil })
    func gracefulEndFinishesTheStreamsAndMovesRequestsAway(kind: PeerServer.Kind) async throws {
        try await withPeer(kind) { peer, access in
            // The library of caddy 2.6.2 (quic-go 0.29) ends its streams with the program.
            if access == .http3 { return }
            let client = try peer.client(access)
            try await client.get("files/small")
            // Apache 2.4.71 fails the streams whose reader it waits for: "The user callback function failed".
            let hasStream = kind != .apache || access != .http2
            var reader = hasStream ? Reader(client.stream("files/large")) : nil
            try await reader?.read(upTo: 1)
            peer.endGracefully()
            try await useUntilGone(client, access)
            try await reader?.read(upTo: .max)
            if let reader { #expect(reader.offset == PeerServer.large.count && reader.isRight, "\(access)") }
            try await peer.restart()
            #expect(try await client.get("files/small", as: String.self) == "hello", "\(access)")
        }
    }

    /// Sends requests until one finds no server or opens a new connection. None of them is lost.
    private func useUntilGone(_ client: Client, _ access: PeerServer.Access) async throws {
        while true {
            do {
                let response = try await client.response(for: client.request(.get, "files/small"), as: String.self)
                #expect(response.value == "hello")
                if !response.metrics.isReusedConnection { return }
            } catch {
                // The system accepts connections that the program then never takes.
                let isNew = error.metrics?.isReusedConnection == false
                #expect(error.kind == .connectionRefused || isNew, "\(access): \(error)")
                return
            }
        }
    }

    /// Reads `/files/large`, and compares it.
    private struct Reader {
        private var iterator: ResponseStream.Chunks.Iterator
        private(set) var offset = 0
        private(set) var isRight = true

        init(_ stream: ResponseStream) { iterator = stream.chunks.makeAsyncIterator() }

        mutating func read(upTo count: Int) async throws {
            while offset < count, let chunk = try await iterator.next() {
                if !PeerServer.large.matches(chunk, at: offset) { isRight = false }
                offset += chunk.count
            }
        }
    }
}
#endif
