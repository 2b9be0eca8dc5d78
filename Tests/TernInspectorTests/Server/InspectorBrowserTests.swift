// The program of Python.
import Foundation
import Synchronization
import Tern
import TernHTTPCache
import TernInspector
import TernTesting
import Testing

/// Opens the page in headless Chromium. `make test-inspector` runs it, and leaves pictures.
@Suite(
    "Inspector: browser", .serialized, .timeLimit(.minutes(5)),
    .enabled(if: ProcessInfo.processInfo.environment["TERN_BROWSER"] == "1", "make test-inspector"))
struct InspectorBrowserTests {
    private static let handler: LoopbackServer.Handler = { exchange in
        let path = exchange.request.path
        switch path {
        case "/login": try exchange.respond(status: 302, headers: [("Location", "/home?token=s3cret")])
        case "/orders":
            let isFirst = exchange.request["X-Attempt"] == nil && exchange.request.connectionIndex >= 0
            try exchange.pause(for: .milliseconds(40))
            try exchange.respond(
                status: isFirst && orders.next() == 1 ? 503 : 201,
                headers: [("Set-Cookie", "id=s3cret; Path=/; HttpOnly"), ("Server", "orders/2.1")], text: "{}")
        case "/missing": try exchange.respond(status: 404, text: "none")
        case "/files/large.iso":
            try exchange.writeHead(headers: [("Content-Length", "40000000")])
            try exchange.streamZeros(count: 14_000_000)
            try exchange.waitForClientToClose()
        default:
            try exchange.pause(for: .milliseconds(10 + 9 * (exchange.number % 8)))
            let fields = path == "/feed" ? [("Cache-Control", "max-age=600")] : []
            try exchange.writeHead(headers: fields + [("Content-Length", "48000")])
            try exchange.streamZeros(count: 24_000)
            try exchange.pause(for: .milliseconds(5 * (exchange.number % 5)))
            try exchange.streamZeros(count: 24_000)
        }
    }

    private static let orders = Counter()

    private final class Counter: Sendable {
        private let value = Mutex(0)
        func next() -> Int {
            value.withLock {
                $0 += 1
                return $0
            }
        }
    }

    @Test func thePageWorksInChromium() async throws {
        let cache = HTTPCache.memory()
        let change: (inout Session.Configuration) -> Void = {
            $0.cache = cache
            var policy = RetryPolicy()
            policy.methods.insert(.post)
            policy.firstDelay = .milliseconds(80)
            $0.interceptors = [RetryInterceptor(policy)]
            $0.maximumConnectionsPerHost = 4
        }
        try await InspectedSession.run(change: change, answering: Self.handler) { inspected, _, client in
            try await client.get("login") { $0.label = "login" }
            for _ in 0..<2 { _ = try await client.get("feed", as: Data.self) { $0.validation = .any } }
            try await client.post(
                "orders", headers: ["Authorization": "Bearer s3cret", "Idempotency-Key": "7f3a"],
                body: .json(["item": 7]))
            let download = client.stream("files/large.iso")
            _ = try await download.response
            let reader = Task { for try await _ in download.chunks {} }
            defer { reader.cancel() }
            await withTaskGroup(of: Void.self) { group in
                for number in 1...18 {
                    let path = "photos/\(number)/thumbnail.jpg?width=320"
                    group.addTask { _ = try? await client.get(path, as: Data.self) }
                }
            }
            _ = try? await client.get("missing")
            _ = try? await client.get("http://127.0.0.1:\(LoopbackServer.refusingPort())/refused?key=s3cret")
            _ = try? await client.get("a?q=<img src=x onerror=window.wasRun=1>") {
                $0.label = "<img src=x onerror=window.wasRun=1><b>label</b>"
            }
            try await client.get("home")
            try await Self.run("scripts/inspector-page", inspected.url.absoluteString)
            download.task.cancel()
        }
    }

    /// Runs a program to its end, and expects the status 0.
    private static func run(_ program: String, _ argument: String) async throws {
        let process = Process()
        process.executableURL = URL(filePath: FileManager.default.currentDirectoryPath + "/" + program)
        process.arguments = [argument]
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        #expect(status == 0)
    }
}
