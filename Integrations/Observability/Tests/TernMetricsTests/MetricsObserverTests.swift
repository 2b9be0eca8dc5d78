import Metrics
import MetricsTestKit
import Synchronization
import Tern
import TernObservation
import TernTesting
import Testing

@testable import TernMetrics

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Metrics", .timeLimit(.minutes(1)))
struct MetricsObserverTests {
    private let metrics = TestMetrics()

    private func withServer(
        maximumServers: Int = 100, options: MetricsObserver.Options = .init(),
        change: (inout Session.Configuration) -> Void = { _ in },
        _ handler: @escaping LoopbackServer.Handler,
        test: (_ server: LoopbackServer, _ client: Client, _ observer: MetricsObserver) async throws -> Void
    ) async throws {
        let observer = MetricsObserver(factory: metrics, maximumServers: maximumServers, options: options)
        let server = try LoopbackServer(handler: handler)
        defer { server.stop() }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        configuration.observers = [observer]
        change(&configuration)
        try await test(server, Client(baseURL: server.url, session: Session(configuration: configuration)), observer)
    }

    private var durations: [TestTimer] { metrics.timers.filter { $0.label == "http.client.request.duration" } }
    private var active: [TestMeter] { metrics.meters(label: "http.client.active_requests") }

    private func dimension(_ name: String, of dimensions: [(String, String)]) -> String? {
        dimensions.first { $0.0 == name }?.1
    }

    private func statuses() -> [String: Int] {
        Dictionary(
            durations.map {
                (dimension("http.response.status_code", of: $0.dimensions) ?? "no dimension", $0.values.count)
            },
            uniquingKeysWith: +)
    }

    @Test func eachRequestHasADuration() async throws {
        let count = Count()
        try await withServer {
            var policy = RetryPolicy()
            policy.firstDelay = .zero
            $0.interceptors = [RetryInterceptor(policy)]
        } _: { exchange in
            if exchange.request.path == "/start" {
                return try exchange.respond(status: 302, headers: [("Location", "/end")])
            }
            try exchange.respond(status: count.next() == 1 ? 503 : 200, text: "done")
        } test: { server, client, observer in
            try await client.get("start")
            await client.session.drained()
            #expect(statuses() == ["302": 2, "503": 1, "200": 1])
            let dimensions = [
                ("http.request.method", "GET"), ("server.address", "127.0.0.1"), ("server.port", "\(server.port)"),
                ("url.template", ""), ("http.response.status_code", "503"), ("error.type", "503"),
                ("network.protocol.version", "1.1"),
            ]
            let timer = try metrics.expectTimer("http.client.request.duration", dimensions)
            #expect(timer.displayUnit == .seconds && timer.values.count == 1)
            #expect(durations.flatMap(\.values).allSatisfy { $0 > 0 && $0 < 60_000_000_000 })
            // Backends such as Prometheus require the same names for each value.
            #expect(Set(durations.map { $0.dimensions.map(\.0) }).count == 1)
            #expect(observer.count == 0)
        }
    }

    @Test func activeRequestsAreThoseThatRun() async throws {
        let (arrived, gate) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withServer { exchange in
            arrived.open()
            try exchange.wait(for: gate)
            try exchange.respond()
        } test: { server, client, _ in
            let task = client.task(.post, "x")
            try await arrived.wait()
            #expect(active.map(\.lastValue) == [1])
            #expect(active.map { $0.dimensions.map(\.1) } == [["POST", "127.0.0.1", "\(server.port)", ""]])
            gate.open()
            _ = try await task.value
            await client.session.drained()
            #expect(active.map(\.lastValue) == [0])
        }
    }

    @Test func aCancelledAndAFailedRequestAreMeasured() async throws {
        let arrived = LoopbackServer.Gate()
        let port = try LoopbackServer.refusingPort()
        try await withServer { exchange in
            arrived.open()
            try exchange.waitForClientToClose()
        } test: { _, client, observer in
            let task = client.task(.get, "x")
            try await arrived.wait()
            task.cancel()
            _ = try? await task.value
            _ = try? await client.get("http://127.0.0.1:\(port)/")
            await client.session.drained()
            let errors = Set(durations.map { dimension("error.type", of: $0.dimensions) })
            #expect(errors == ["cancelled", "connection-refused"] && statuses() == ["": 2])
            #expect(active.allSatisfy { $0.lastValue == 0 } && active.count == 2)
            #expect(observer.count == 0)
        }
    }

    @Test func theNumberOfDimensionsIsBounded() async throws {
        try await withServer(maximumServers: 2) {
            $0.hostAddresses = [:]
            $0.validation = .any
        } _: { exchange in
            try exchange.respond(status: exchange.request.path == "/strange" ? 799 : 200, text: "x")
        } test: { server, client, _ in
            var configuration = client.session.configuration
            for number in 0..<10 { configuration.hostAddresses["host\(number).example:\(server.port)"] = ["127.0.0.1"] }
            let client = Client(session: Session(configuration: configuration))
            for number in 0..<10 {
                let method = Request.Method("METHOD\(number)")
                try await client.send(method, "http://host\(number).example:\(server.port)/?q=\(number)")
            }
            try await client.get("http://host0.example:\(server.port)/strange")
            await client.session.drained()
            let servers = Set(durations.map { dimension("server.address", of: $0.dimensions) })
            #expect(servers == ["host0.example", "host1.example", "_OTHER"])
            let methods = Set(durations.map { dimension("http.request.method", of: $0.dimensions) })
            #expect(methods == ["_OTHER", "GET"])
            #expect(statuses() == ["200": 10, "_OTHER": 1])
            #expect(durations.count == 4 && active.count == 4)
        }
    }

    @Test func templatesAreDimensionsUntilARedirect() async throws {
        try await withServer { exchange in
            if exchange.request.path == "/old/7" {
                return try exchange.respond(status: 302, headers: [("Location", "/users/7")])
            }
            try exchange.respond()
        } test: { _, client, _ in
            for path in ["users/7", "users/8", "old/7"] {
                try await client.get(path) { $0.userInfo[Request.URLTemplate.self] = "/\(path.prefix(3))*/{id}" }
            }
            await client.session.drained()
            let templates = durations.map { timer in
                "\(dimension("url.template", of: timer.dimensions) ?? "none") \(timer.values.count)"
            }
            #expect(Set(templates) == ["/use*/{id} 2", "/old*/{id} 1", " 1"])
            let running = Set(active.map { dimension("url.template", of: $0.dimensions) })
            #expect(running == ["/use*/{id}", "/old*/{id}", ""])
        }
    }

    @Test func theNumberOfTemplatesIsBounded() throws {
        var limit = DimensionLimit(maximumServers: 1)
        var templates: Set<String> = []
        for number in 0..<1_000 {
            var request = try Request(.get, "https://example.com/")
            request.userInfo[Request.URLTemplate.self] = "/\(number)"
            templates.insert(limit.dimensions(of: RequestFacts(request)).template)
        }
        #expect(templates.count == DimensionLimit.maximumTemplates + 1 && templates.contains("_OTHER"))
    }

    @Test func furtherMetricsAreAChoice() async throws {
        var options = MetricsObserver.Options()
        options.metrics = Set(MetricsObserver.Options.Metric.allCases)
        options.hasScheme = true
        options.knownMethods = ["GET", "POST", "PURGE"]
        try await withServer(options: options) { exchange in
            _ = try exchange.readBody()
            try exchange.respond(text: "hello")
        } test: { _, client, _ in
            try await client.post("x", body: .text("four"))
            try await client.send(Request.Method("PURGE"), "x")
            await client.session.drained()
            #expect(Set(durations.map { dimension("http.request.method", of: $0.dimensions) }) == ["POST", "PURGE"])
            #expect(durations.allSatisfy { dimension("url.scheme", of: $0.dimensions) == "http" })
            #expect(active.allSatisfy { dimension("url.scheme", of: $0.dimensions) == "http" })
            let sent = metrics.recorders.filter { $0.label == "http.client.request.body.size" }
            let received = metrics.recorders.filter { $0.label == "http.client.response.body.size" }
            #expect(sent.flatMap(\.values) == [4] && received.flatMap(\.values) == [5, 5])
            // The second request has the connection of the first.
            let steps = metrics.timers.filter { $0.label.hasPrefix("tern.client.connection.") }
            #expect(
                Set(steps.map(\.label)) == [
                    "tern.client.connection.lookup.duration", "tern.client.connection.connect.duration",
                ])
            #expect(steps.allSatisfy { $0.values.count == 1 && $0.displayUnit == .seconds })
            #expect(steps.allSatisfy { dimension("network.protocol.version", of: $0.dimensions) == "1.1" })
        }
    }

    // MARK: Open connections

    private var connections: [String: [Double]] {
        let values = metrics.meters(label: "http.client.open_connections").map { meter in
            (
                ["http.connection.state", "server.address", "server.port"]
                    .map { dimension($0, of: meter.dimensions) ?? "no dimension" }.joined(separator: " "),
                meter.values
            )
        }
        return Dictionary(values, uniquingKeysWith: +)
    }

    @Test func openConnectionsAreMeasuredUntilTheInvalidation() async throws {
        let (arrived, gate, clock) = (LoopbackServer.Gate(), LoopbackServer.Gate(), ManualClock())
        try await withServer { exchange in
            arrived.open()
            try exchange.wait(for: gate)
            try exchange.respond()
        } test: { server, client, observer in
            let measurement = Task {
                await observer.measureConnections(of: client.session, every: .seconds(10), clock: clock)
            }
            func measure() async throws {
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(10))
                try await clock.waitForSleepers(1)
            }
            try await measure()
            #expect(connections == [:])
            let (active, idle) = ("active 127.0.0.1 \(server.port)", "idle 127.0.0.1 \(server.port)")
            let task = client.task(.get, "x")
            try await arrived.wait()
            try await measure()
            #expect(connections == [active: [1], idle: []])
            gate.open()
            _ = try await task.value
            try await measure()
            #expect(connections == [active: [1, 0], idle: [1]])
            // A value that has not changed is not recorded again.
            try await measure()
            await client.session.finishTasksAndInvalidate()
            clock.advance(by: .seconds(10))
            await measurement.value
            #expect(connections == [active: [1, 0], idle: [1, 0]])
        }
    }

    @Test func aServerWithoutConnectionsIsSetToZeroOnce() async throws {
        let (mayClose, clock) = (LoopbackServer.Gate(), ManualClock())
        try await withServer { exchange in
            try exchange.respond()
            try exchange.wait(for: mayClose)
            exchange.close()
        } test: { server, client, observer in
            try await client.get("x")
            let measurement = Task {
                await observer.measureConnections(of: client.session, every: .seconds(10), clock: clock)
            }
            try await clock.waitForSleepers(1)
            mayClose.open()
            while await client.session.openConnections != [] { await Task.yield() }
            for _ in 0..<3 {
                clock.advance(by: .seconds(10))
                try await clock.waitForSleepers(1)
            }
            #expect(connections["idle 127.0.0.1 \(server.port)"] == [1, 0])
            measurement.cancel()
            await measurement.value
            #expect(connections["idle 127.0.0.1 \(server.port)"] == [1, 0])
        }
    }

    @Test func connectionsOfSeveralSessionsAddUpWhileTheyAreMeasured() async throws {
        let clock = ManualClock()
        try await withServer {
            try $0.respond()
        } test: { server, client, observer in
            let other = Client(baseURL: server.url, session: Session(configuration: client.session.configuration))
            for client in [client, other] { try await client.get("x") }
            let measurements = [client, other].map { client in
                Task { await observer.measureConnections(of: client.session, every: .seconds(10), clock: clock) }
            }
            try await clock.waitForSleepers(2)
            #expect(connections["idle 127.0.0.1 \(server.port)"] == [1, 2])
            measurements[0].cancel()
            await measurements[0].value
            #expect(connections["idle 127.0.0.1 \(server.port)"] == [1, 2, 1])
            measurements[1].cancel()
            await measurements[1].value
            #expect(connections["idle 127.0.0.1 \(server.port)"] == [1, 2, 1, 0])
        }
    }

    @Test func theNumberOfServersWithConnectionsIsBounded() async throws {
        let clock = ManualClock()
        try await withServer(maximumServers: 2) {
            try $0.respond()
        } test: { server, client, observer in
            var configuration = client.session.configuration
            for number in 0..<5 { configuration.hostAddresses["host\(number).example:\(server.port)"] = ["127.0.0.1"] }
            let client = Client(session: Session(configuration: configuration))
            for number in 0..<5 { try await client.get("http://host\(number).example:\(server.port)/") }
            let measurement = Task {
                await observer.measureConnections(of: client.session, every: .seconds(10), clock: clock)
            }
            try await clock.waitForSleepers(1)
            // The first two servers are those of the requests.
            #expect(
                connections.filter { $0.key.hasPrefix("idle") } == [
                    "idle host0.example \(server.port)": [1], "idle host1.example \(server.port)": [1],
                    "idle _OTHER ": [3],
                ])
            #expect(connections.count == 6)
            measurement.cancel()
            await measurement.value
        }
    }

    @Test func onlyChangesOfConnectionsAreRecorded() {
        func dimensions(_ state: ConnectionDimensions.State, _ address: String) -> ConnectionDimensions {
            ConnectionDimensions(state: state, server: ServerDimensions(address: address, port: "80", scheme: nil))
        }
        var counts = ConnectionCounts()
        let (active, idle) = (dimensions(.active, "a"), dimensions(.idle, "a"))
        #expect(counts.replace([active: 2, idle: 0]) == [active: 2, idle: 0])
        #expect(counts.replace([active: 2, idle: 0]) == [:])
        #expect(counts.replace([active: 0, idle: 1]) == [active: -2, idle: 1])
        #expect(counts.replace([:]) == [idle: -1])
        #expect(counts.replace([:]) == [:])
        let other = dimensions(.idle, "b")
        #expect(counts.replace([other: 1]) == [other: 1])
    }

    @Test func noDimensionHasASecret() async throws {
        try await withServer {
            try $0.respond(status: 403, text: "s3cret")
        } test: { server, client, _ in
            let url = "http://ada:s3cret@127.0.0.1:\(server.port)/s3cret?token=s3cret"
            _ = try? await client.get(url, headers: ["Authorization": "s3cret"])
            await client.session.drained()
            let dimensions = durations.flatMap(\.dimensions) + active.flatMap(\.dimensions)
            #expect(!dimensions.isEmpty && !dimensions.contains { "\($0)".contains("s3cret") })
        }
    }

    private final class Count: Sendable {
        private let value = Mutex(0)
        func next() -> Int {
            value.withLock {
                $0 += 1
                return $0
            }
        }
    }
}
