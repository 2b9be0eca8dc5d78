#if os(Linux) && !TERN_URLSESSION
import Foundation
import TernEngine
import TernTesting
import Testing

@testable import Tern

/// Checks connections that are opened before a request, and those that are replaced because of their age or use.
@Suite("Wire: connections opened early and replaced", .timeLimit(.minutes(1)))
struct ConnectionRenewalTests {
    private func open(_ client: Client) async -> Int {
        await client.session.openConnections.reduce(0) { $0 + $1.idleCount + $1.activeCount }
    }

    // MARK: Before a request

    @Test(.enabled(if: !EventLoops.areSpreadForTests, "the connections are on the session's own loop"))
    func theFirstRequestFindsAnOpenConnection() async throws {
        try await withServer {
            try $0.respond(text: "ok")
        } test: { server, client in
            try client.session.preconnect(to: "\(server.url)", count: 2)
            try await server.wait { $0.acceptedConnections == 2 }
            while await open(client) < 2 { await Task.yield() }
            #expect(server.counts.requestsReceived == 0)
            _ = try await client.get("x")
            // Those that are there count.
            try client.session.preconnect(to: "\(server.url)", count: 2)
            _ = try await client.get("x")
            #expect(server.counts.acceptedConnections == 2)
        }
    }

    @Test(.enabled(if: !EventLoops.areSpreadForTests, "the connections are on the session's own loop"))
    func aRequestWaitsForTheConnectionThatOpens() async throws {
        try await withServer {
            try $0.respond(text: "ok")
        } test: { server, client in
            try client.session.preconnect(to: "\(server.url)")
            #expect(try await client.get("x", as: String.self) == "ok")
            #expect(server.counts.acceptedConnections == 1)
        }
    }

    @Test func theLimitsHold() async throws {
        try await withServer(configuration: .test { $0.maximumConnectionsPerHost = 3 }) {
            try $0.respond(text: "ok")
        } test: { server, client in
            try client.session.preconnect(to: "\(server.url)", count: 100)
            try await server.wait { $0.acceptedConnections == 3 }
            while await open(client) < 3 { await Task.yield() }
            _ = try await client.get("x")
            #expect(server.counts.acceptedConnections == 3)
        }
    }

    @Test func aServerThatIsNotThereIsReportedByTheRequest() async throws {
        let port = try LoopbackServer.refusingPort()
        let session = Session(configuration: .test())
        try session.preconnect(to: "http://127.0.0.1:\(port)", count: 3)
        let error = try await failure { try await Client(session: session).get("http://127.0.0.1:\(port)/x") }
        #expect(error.kind == .connectionRefused)
        #expect(await session.openConnections.isEmpty)
    }

    @Test func nothingIsOpenedForAURLThatCannotBeRequested() async throws {
        let session = Session(configuration: .test())
        for url in ["ftp://a.example", "", "http://", "http://a.example:99999"] {
            let error = try await failure { try session.preconnect(to: url) }
            #expect(error.kind == .invalidRequest)
        }
        try session.preconnect(to: "http://127.0.0.1:1", count: 0)
        try session.preconnect(to: "http://127.0.0.1:1", count: -1)
        await session.finishTasksAndInvalidate()
        try session.preconnect(to: "http://127.0.0.1:1")
    }

    // MARK: Replaced

    @Test func aConnectionCarriesItsNumberOfRequests() async throws {
        try await withServer(configuration: .test { $0.maximumConnectionUses = 2 }) {
            try $0.respond(text: "ok")
        } test: { server, client in
            for _ in 0..<5 { _ = try await client.get("x") }
            #expect(server.counts.acceptedConnections == 3)
            try await server.wait { $0.openConnections == 1 }
        }
    }

    @Test func anOldConnectionIsReplaced() async throws {
        let gate = LoopbackServer.Gate()
        let configuration = Session.Configuration.test { $0.maximumConnectionAge = .milliseconds(200) }
        try await withServer(configuration: configuration) { exchange in
            if exchange.request.path == "/held" { try exchange.wait(for: gate) }
            try exchange.respond(text: "ok")
        } test: { server, client in
            let held = client.task(.get, "held")
            try await server.wait { $0.requestsReceived == 1 }
            _ = try await client.get("x")
            // The idle one is closed at its age. The other one carries its request to the end.
            try await server.wait { $0.openConnections == 1 }
            gate.open()
            #expect(try await held.value == Data("ok".utf8))
            try await server.wait { $0.openConnections == 0 }
            _ = try await client.get("x")
            #expect(server.counts.acceptedConnections >= 3)
        }
    }

    @Test(arguments: ["uses", "age"])
    func limitsThatLeaveNothingAreRefused(limit: String) async throws {
        let configuration = Session.Configuration.test {
            if limit == "uses" { $0.maximumConnectionUses = 0 } else { $0.maximumConnectionAge = .zero }
        }
        let client = Client(session: Session(configuration: configuration))
        let error = try await failure { try await client.get("http://127.0.0.1:1/") }
        #expect(error.kind == .invalidRequest && error.reason.lowercased().contains(limit), "\(error)")
    }
}
#endif
