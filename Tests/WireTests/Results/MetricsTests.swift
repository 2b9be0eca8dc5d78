#if os(Linux) && !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Compares the metrics with the counts of the server.
@Suite("Wire: metrics", .timeLimit(.minutes(1)))
struct MetricsTests {
    @Test func newConnectionHasItsPhasesInOrder() async throws {
        try await withServer {
            try $0.respond(text: "hello")
        } test: { server, client in
            let metrics = try await client.response(for: client.request(.get, "")).metrics
            let connect = try #require(metrics.connect)
            let firstByte = try #require(metrics.firstByte)
            let total = try #require(metrics.total)
            #expect(connect >= .zero && firstByte > connect && total >= firstByte)
            #expect(metrics.nameLookup.map { $0 <= firstByte } ?? true)
            #expect(metrics.tls == nil)
            #expect(metrics.httpVersion == .http11)
            #expect(metrics.transactions == 1 && !metrics.isReusedConnection)
            #expect(metrics.remoteAddress == "127.0.0.1" && metrics.remotePort == server.port)
        }
    }

    @Test func reusedConnectionHasNoConnectPhase() async throws {
        try await withServer {
            try $0.respond(text: "hello")
        } test: { server, client in
            try await client.get("")
            let metrics = try await client.response(for: client.request(.get, "")).metrics
            #expect(metrics.isReusedConnection)
            #expect(metrics.connect == nil && metrics.nameLookup == nil && metrics.tls == nil)
            #expect(metrics.firstByte != nil)
            #expect(metrics.remoteAddress == "127.0.0.1" && metrics.remotePort == server.port)
        }
    }

    @Test func connectionOfARefusedRequestIsNewForTheNextOne() async throws {
        try await withServer {
            try $0.respond(text: "hello")
        } test: { server, client in
            // Refused when the head is written, after the connection was opened.
            let refused = try client.request(.get, "", headers: ["Content-Length": "5"])
            let error = await #expect(throws: NetworkError.self) { try await client.response(for: refused) }
            #expect(error?.kind == .invalidRequest)
            let metrics = try await client.response(for: client.request(.get, "")).metrics
            #expect(!metrics.isReusedConnection && metrics.connect != nil)
            #expect(server.counts.acceptedConnections == 1)
        }
    }

    @Test(arguments: [0, 10, 70_000, 3_000_000]) func metricsMatchTheBytesOfTheServer(size: Int) async throws {
        try await withServer { exchange in
            try exchange.drainBody()
            try exchange.respond(headers: [("X-Some", "field")], body: [UInt8](repeating: 1, count: size))
        } test: { server, client in
            let request = try client.request(.post, "path", body: .data(Data(count: size)))
            let metrics = try await client.response(for: request).metrics
            try await server.wait { $0.requestsServed == 1 }
            #expect(metrics.sentBytes == server.counts.bytesIn)
            #expect(metrics.receivedBytes == server.counts.bytesOut)
            #expect(metrics.decodedBodyBytes == size)
        }
    }

    @Test func handleResponseAndEventHaveTheSameMetrics() async throws {
        try await withServer {
            try $0.respond(text: "hello")
        } test: { _, client in
            let events = client.session.tasks.events
            let task = client.session.task(for: try client.request(.get, ""))
            #expect(task.metrics == nil)
            task.resume()
            let response = try await task.value
            #expect(task.metrics == response.metrics)
            for await case .completed(let completion) in events {
                #expect(completion.metrics == response.metrics)
                break
            }
        }
    }

    @Test func failureIsMeasured() async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            exchange.close()
        } test: { server, client in
            let task = client.task(.get, "")
            let error = try await failure { try await task.value }
            let metrics = try #require(error.metrics)
            #expect(metrics == task.metrics)
            #expect(metrics.decodedBodyBytes == 3 && metrics.receivedBytes == server.counts.bytesOut)
            #expect(metrics.firstByte != nil && metrics.total != nil)
            #expect(metrics.remotePort == server.port)
        }
    }

    @Test func failedConnectHasNoPeer() async throws {
        let port = try LoopbackServer.refusingPort()
        let client = try Client(baseURL: "http://127.0.0.1:\(port)/", session: Session(configuration: .test()))
        let metrics = try #require(try await failure { try await client.get("") }.metrics)
        #expect(metrics.remoteAddress == nil && metrics.remotePort == nil)
        #expect(metrics.connect == nil && metrics.firstByte == nil && metrics.httpVersion == nil)
        #expect(metrics.receivedBytes == 0 && metrics.sentBytes == 0)
    }

    @Test func streamIsMeasuredAtItsEnd() async throws {
        try await withServer { exchange in
            try exchange.respond(body: LoopbackServer.Pattern(count: 1_000_000).bytes())
        } test: { server, client in
            let stream = client.stream("")
            var count = 0
            for try await chunk in stream.chunks { count += chunk.count }
            #expect(stream.task.metrics?.decodedBodyBytes == 1_000_000 && count == 1_000_000)
            // The server counts the bytes it has written, which the client can read before they are counted.
            let received = try #require(stream.task.metrics).receivedBytes
            try await server.wait { Int64($0.bytesOut) == received }
        }
    }

    @Test func unixSocketHasNoAddress() async throws {
        let path = "/tmp/tern-\(UUID().uuidString.prefix(8)).sock"
        try await withServer(on: .unix(path: path)) {
            try $0.respond(text: "ok")
        } test: { _, client in
            let metrics = try await client.response(for: client.request(.get, "")).metrics
            #expect(metrics.remoteAddress == nil && metrics.remotePort == nil)
        }
    }
}
#endif
