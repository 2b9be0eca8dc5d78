import Tern
import TernStreaming
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Cancels, closes and releases streams in each of their states.
@Suite("Event streams: ends", .timeLimit(.minutes(1)))
struct EventStreamEndTests {
    enum Place: String, CaseIterable {
        case connecting, open, waiting, offline
    }

    /// Brings a stream into a state, with a reader in its own task, and runs a test.
    private func withStream(
        at place: Place,
        test: (ServerSentEvents, Task<[String], any Error>, LoopbackServer, ManualClock) async throws -> Void
    ) async throws {
        let clock = ManualClock()
        try await withEventServer { exchange in
            switch place {
            case .connecting, .offline: try exchange.waitForClientToClose()
            case .open:
                try exchange.writeEvents([])
                try exchange.waitForClientToClose()
            case .waiting:
                try exchange.writeEvents([.event("one")])
                try exchange.endChunks()
            }
        } test: { (server, client) async throws in
            var client = client
            if place == .offline {
                var configuration = Session.Configuration()
                configuration.reachability = Reachability(ScriptedNetwork(.unreachable))
                let stub = StubTransport { _ in throw StubTransport.Failure(.dns) }
                client = try Client(
                    baseURL: "https://a.example", session: Session(configuration: configuration, stub: stub))
            }
            let events = client.events("a", options: .test(clock))
            let reader = Task { try await allData(of: events) }
            await events.wait { $0.name == place.rawValue }
            if place == .connecting { try await server.wait { $0.requestsReceived == 1 } }
            try await test(events, reader, server, clock)
        }
    }

    @Test(arguments: Place.allCases) func cancellingTheReaderEndsTheStream(at place: Place) async throws {
        try await withStream(at: place) { events, reader, server, clock in
            reader.cancel()
            let error = try await streamFailure { try await reader.value }
            #expect(error.isCancelled)
            guard case .closed(.failed(let failure)) = events.state else {
                Issue.record("\(events.state)")
                return
            }
            #expect(failure.isCancelled)
            try await server.wait { $0.openConnections - $0.idleConnections == 0 }
            #expect(clock.sleeperCount == 0)
        }
    }

    @Test(arguments: Place.allCases) func closingEndsTheReader(at place: Place) async throws {
        try await withStream(at: place) { events, reader, server, clock in
            await events.close()
            #expect(try await reader.value == (place == .waiting ? ["one"] : []))
            #expect(events.state.name == "closed")
            try await server.wait { $0.openConnections - $0.idleConnections == 0 }
            #expect(clock.sleeperCount == 0)
            await events.close()
            #expect(try await allData(of: events) == [])
        }
    }

    @Test func cancelledReaderSendsNothing() async throws {
        try await withEventServer { _ in
        } test: { (server, client) async throws in
            let reader = Task {
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                return try await allData(of: client.events("a"))
            }
            let error = try await streamFailure { try await reader.value }
            #expect(error.isCancelled && server.counts.acceptedConnections == 0)
        }
    }

    @Test func releasedStreamClosesItsConnection() async throws {
        try await withEventServer { exchange in
            try exchange.writeEvents([.event("one")])
            try exchange.waitForClientToClose()
        } test: { (server, client) async throws in
            var states: AsyncStream<EventStreamState>?
            do {
                let events = client.events("a")
                states = events.states
                for try await _ in events { break }
            }
            try await server.wait { $0.openConnections == 0 }
            var last: EventStreamState?
            for await state in try #require(states) { last = state }
            #expect(last?.name == "closed")
        }
    }

    @Test func cancellingTheSessionsTaskEndsTheStream() async throws {
        try await withEventServer { exchange in
            try exchange.writeEvents([.event("one")])
            try exchange.waitForClientToClose()
        } test: { (server, client) async throws in
            let error = try await streamFailure {
                for try await _ in client.events("a") { await client.session.tasks.all.first?.cancel() }
            }
            #expect(error.isCancelled && server.requests.count == 1)
        }
    }

    @Test func statesBeginWithConnectingAndEndWithTheReason() async throws {
        let clock = ManualClock()
        let gate = LoopbackServer.Gate()
        try await withEventServer { exchange in
            try exchange.wait(for: gate)
            try exchange.writeEvents([.event("one")])
            try exchange.endChunks()
        } test: { (_, client) async throws in
            let events = client.events("a", options: .test(clock) { $0.reconnection.limit = 0 })
            #expect(events.state.name == "connecting")
            var names: [String] = []
            let reader = Task { try await allData(of: events.through { $0.data == "never" }) }
            for await state in events.states {
                if names.last != state.name { names.append(state.name) }
                if state.name == "connecting" { gate.open() }
                if state.name == "waiting" { await events.close() }
            }
            #expect(names.first == "connecting" && names.last == "closed" && names.contains("waiting"))
            #expect(try await reader.value == ["one"])
        }
    }
}
