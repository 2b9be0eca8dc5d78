#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernStreaming
import TernTesting
import Testing

/// Checks the shares of the connections to one host: one is left by requests of low priority, and streams that last
/// long have one of their own.
@Suite("Wire: shares of the connections", .timeLimit(.minutes(1)))
struct ConnectionShareTests {
    /// Answers `/events` and `/camera` with streams that last until the gate opens, `/slow` after that, and all else at
    /// once.
    private func withStreams(
        _ configuration: Session.Configuration, _ gate: LoopbackServer.Gate,
        _ test: (LoopbackServer, Client) async throws -> Void
    ) async throws {
        try await withServer(configuration: configuration) { exchange in
            switch exchange.request.path {
            case "/events", "/camera":
                let type =
                    exchange.request.path == "/events"
                    ? "text/event-stream" : "multipart/x-mixed-replace; boundary=b"
                try exchange.write("HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\n\r\ndata: 1\n\n")
                try exchange.wait(for: gate)
            case "/slow":
                try exchange.wait(for: gate)
                try exchange.respond(text: "slow")
            default: try exchange.respond(text: "now")
            }
        } test: { server, client in
            try await test(server, client)
            gate.open()
        }
    }

    @Test func lowPrioritiesLeaveAConnectionToOthers() async throws {
        let gate = LoopbackServer.Gate()
        try await withStreams(.test { $0.maximumConnectionsPerHost = 8 }, gate) { server, client in
            let low = (0..<40).map { number in
                client.task(.get, "slow", as: String.self) { $0.priority = number % 2 == 0 ? .low : .veryLow }
            }
            try await server.wait { $0.requestsReceived == 7 }
            let text = try await client.get("now", as: String.self) { $0.priority = .veryHigh }
            #expect(text == "now")
            #expect(server.counts.requestsReceived == 8)
            gate.open()
            for task in low {
                let slow = try await task.value
                #expect(slow == "slow")
            }
            #expect(server.counts.acceptedConnections == 8)
        }
    }

    @Test(arguments: ["events", "camera"])
    func streamsThatLastLongLeaveTheConnectionsToOthers(path: String) async throws {
        let gate = LoopbackServer.Gate()
        try await withStreams(.test { $0.maximumConnectionsPerHost = 2 }, gate) { server, client in
            let streams = (0..<3).map { _ in client.stream(path) }
            for stream in streams.prefix(2) {
                let head = try await stream.response
                #expect(head.status == 200)
            }
            // The limit of the streams is that of the other requests.
            let text = try await client.get("now", as: String.self)
            #expect(text == "now")
            withExtendedLifetime(streams) {}
        }
    }

    @Test func anEventStreamSaysThatItWaitsForAConnection() async throws {
        let gate = LoopbackServer.Gate()
        try await withStreams(.test { $0.maximumConnectionsPerHost = 1 }, gate) { server, client in
            let first = client.events("events")
            var events = first.makeAsyncIterator()
            let event = try await events.next()
            #expect(event?.data == "1")
            let second = client.events("events")
            let reader = Task {
                for try await event in second { return event.data }
                return ""
            }
            for await state in second.states { if case .waitingForConnection = state { break } }
            let text = try await client.get("now", as: String.self)
            #expect(text == "now")
            await first.close()
            let data = try await reader.value
            #expect(data == "1")
            await second.close()
        }
    }

    @Test func aRequestThatFindsNoConnectionEndsAtItsLimit() async throws {
        let gate = LoopbackServer.Gate()
        try await withStreams(.test { $0.maximumConnectionsPerHost = 1 }, gate) { server, client in
            let slow = client.task(.get, "slow", as: String.self)
            try await server.wait { $0.requestsReceived == 1 }
            let error = try await failure {
                try await client.get("now", as: String.self) { $0.timeouts.queue = .milliseconds(50) }
            }
            #expect(error.kind == .queueTimedOut && error.timeoutPhase == .queue)
            #expect(
                error.reason
                    == "no connection to 127.0.0.1:\(server.port) was free for 0.05 seconds; 1 are in use; nothing was sent"
            )
            #expect(server.counts.requestsReceived == 1)
            gate.open()
            let last = try await slow.value
            #expect(last == "slow")
        }
    }

    @Test func aStreamThatFindsNoConnectionEndsAtItsLimit() async throws {
        let gate = LoopbackServer.Gate()
        try await withStreams(.test { $0.maximumConnectionsPerHost = 1 }, gate) { server, client in
            let first = client.events("events")
            var events = first.makeAsyncIterator()
            let event = try await events.next()
            #expect(event?.data == "1")
            var request = try client.request(.get, "events")
            request.timeouts.queue = .milliseconds(50)
            request.isLive = true
            let stream = client.session.stream(request)
            let error = try await failure { _ = try await stream.response }
            #expect(error.kind == .queueTimedOut && error.reason.contains("1 are in use"), "\(error)")
            await first.close()
        }
    }
}
#endif
