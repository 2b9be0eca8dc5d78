import Synchronization
import Tern
import TernHTTPCache
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The stages that a `SessionObserver` sees.
@Suite("Wire: stages of observers", .timeLimit(.minutes(1)))
struct ObserverStageTests {
    private final class Watcher: SessionObserver {
        private let log = Mutex<[String]>([])

        var all: [String] { log.withLock { $0 } }

        func add(_ entry: String) { log.withLock { $0.append(entry) } }

        func willSend(_ request: Request, of task: AnySessionTask) { add("send") }
        func didFail(_ error: NetworkError, of task: AnySessionTask) { add("failed \(error.kind)") }
        func didReceive(_ response: ResponseHead, of task: AnySessionTask) { add("head \(response.status)") }
        func didReceive(bytes: Data, of task: AnySessionTask) { add("bytes \(String(decoding: bytes, as: UTF8.self))") }
        func didValidate(_ response: ResponseHead, error: NetworkError?, of task: AnySessionTask) {
            add("valid \(error?.kind.description ?? "yes")")
        }
        func didDecode(_ result: Result<any Sendable, NetworkError>, from body: Data, of task: AnySessionTask) {
            switch result {
            case .success(let value): add("decoded \(value) of \(body.count)")
            case .failure(let error): add("decoding failed: \(error.kind) of \(body.count)")
            }
        }
        func willRetry(_ request: Request, after error: NetworkError?, of task: AnySessionTask) {
            add("retry after \(error?.status ?? 0)")
        }
        func didReceive(_ challenge: AuthenticationChallenge, of task: AnySessionTask) {
            add("challenge \(challenge.realm ?? "")")
        }
        func didObserve(_ event: TaskRegistry.Event) {
            guard case .completed(let end) = event else { return }
            switch end.value {
            case let response as Response<String>: add("completed response \(response.value)")
            case let value?: add("completed \(value)")
            case nil: add("completed \(end.error?.kind.description ?? "without a value")")
            }
        }
    }

    private static let handler: LoopbackServer.Handler = { exchange in
        switch exchange.request.path {
        case "/moved": try exchange.respond(status: 302, headers: [("Location", "/x")], text: "elsewhere")
        case "/missing": try exchange.respond(status: 404, text: "none")
        default: try exchange.respond(text: "body")
        }
    }

    private func withWatcher(
        _ change: (inout Session.Configuration) -> Void = { _ in }, _ handler: LoopbackServer.Handler? = nil,
        test: (Client, Watcher) async throws -> Void
    ) async throws {
        let watcher = Watcher()
        let configuration = Session.Configuration.test {
            $0.observers = [watcher]
            change(&$0)
        }
        try await withServer(configuration: configuration, handler ?? Self.handler) { _, client in
            try await test(client, watcher)
        }
    }

    @Test func aCallShowsItsStagesInOrder() async throws {
        try await withWatcher { client, watcher in
            let text: String = try await client.get("moved")
            #expect(text == "body")
            #expect(
                watcher.all == [
                    "send", "head 302", "send", "head 200", "bytes body", "valid yes", "decoded body of 4",
                    "completed response body",
                ])
        }
    }

    @Test func aRefusedResponseShowsItsError() async throws {
        try await withWatcher { client, watcher in
            _ = try await failure { try await client.get("missing", as: String.self) }
            #expect(watcher.all == ["send", "head 404", "bytes none", "valid status", "completed status"])
        }
    }

    @Test func aFailedDecodingShowsTheBytes() async throws {
        try await withWatcher { client, watcher in
            let error = try await failure { try await client.get("x", as: Int.self) { $0.validation = .any } }
            #expect(error.kind == .decoding)
            #expect(watcher.all.suffix(2) == ["decoding failed: decoding of 4", "completed decoding"])
        }
    }

    @Test func aHandleShowsItsValueAtItsEnd() async throws {
        try await withWatcher { client, watcher in
            _ = try await client.task(.get, "x", as: String.self).value
            await client.session.drained()
            #expect(watcher.all.last == "completed body")
        }
    }

    @Test func aRepeatedRequestShowsTheFailureBefore() async throws {
        let count = Mutex(0)
        let counting = Counter(count)
        try await withWatcher {
            var policy = RetryPolicy()
            policy.firstDelay = .zero
            $0.interceptors = [RetryInterceptor(policy)]
        } _: { exchange in
            try exchange.respond(status: counting.next() < 3 ? 503 : 200, text: "x")
        } test: { client, watcher in
            let text: String = try await client.get("x")
            #expect(text == "x")
            #expect(watcher.all.filter { $0.hasPrefix("retry") } == ["retry after 503", "retry after 503"])
            #expect(watcher.all.filter { $0.hasPrefix("valid") } == ["valid status", "valid status", "valid yes"])
        }
    }

    // MARK: Measurements

    /// Notes the order of measurements among the stages.
    private final class Measurements: SessionObserver {
        let log = Mutex<[(stage: String, metrics: TaskMetrics?)]>([])

        private func add(_ stage: String, _ metrics: TaskMetrics? = nil) {
            log.withLock { $0.append((stage, metrics)) }
        }

        func willSend(_ request: Request, of task: AnySessionTask) { add("send") }
        func didCollect(_ metrics: TaskMetrics, of task: AnySessionTask) { add("measured", metrics) }
        func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask) {
            add("redirect")
        }
        func willRetry(_ request: Request, after error: NetworkError?, of task: AnySessionTask) { add("retry") }
        func didObserve(_ event: TaskRegistry.Event) { if case .completed = event { add("completed") } }
    }

    @Test func eachAttemptIsMeasured() async throws {
        let measurements = Measurements()
        let configuration = Session.Configuration.test {
            var policy = RetryPolicy()
            policy.firstDelay = .zero
            $0.interceptors = [RetryInterceptor(policy)]
            $0.observers = [measurements]
        }
        try await withServer(configuration: configuration) { exchange in
            switch exchange.request.path {
            case "/moved": try exchange.respond(status: 302, headers: [("Location", "/x")], text: "elsewhere")
            default: try exchange.respond(status: exchange.number == 2 ? 503 : 200, text: "body")
            }
        } test: { server, client in
            try await client.get("moved")
            await client.session.drained()
            let log = measurements.log.withLock { $0 }
            let first = ["send", "redirect", "measured", "send", "measured", "retry"]
            #expect(log.map(\.stage) == first + ["send", "redirect", "measured", "send", "measured", "completed"])
            let metrics = log.compactMap(\.metrics)
            #expect(metrics.map(\.isReusedConnection) == [false, true, true, true])
            #expect(metrics.allSatisfy { $0.remotePort == server.port && $0.httpVersion == .http11 })
            // All had one connection.
            #expect(Set(metrics.map(\.connectionNumber)).count == 1 && metrics[0].connectionNumber != nil)
            // A stream is measured at its end.
            measurements.log.withLock { $0 = [] }
            for try await _ in client.stream("x").chunks {}
            await client.session.drained()
            #expect(measurements.log.withLock { $0.map(\.stage) } == ["send", "measured", "completed"])
        }
    }

    @Test func aFailedAttemptIsMeasuredAndAnAnswerOfACacheIsNot() async throws {
        let measurements = Measurements()
        var configuration = Session.Configuration.test { $0.observers = [measurements] }
        configuration.cache = HTTPCache.memory()
        try await withServer(configuration: configuration) { exchange in
            guard exchange.request.path == "/x" else { return exchange.reset() }
            try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "body")
        } test: { _, client in
            for _ in 0..<2 { try await client.get("x") }
            _ = try await failure { try await client.post("lost") }
            await client.session.drained()
            let stages = measurements.log.withLock { $0.map(\.stage) }
            #expect(stages == ["send", "measured", "completed", "completed", "send", "measured", "completed"])
        }
    }

    // MARK: Bodies that are sent

    /// Notes what is sent in bodies, and nothing else.
    private final class SentBodies: SessionObserver {
        let log = Mutex<[Int64]>([])
        let resumed = Mutex<[String]>([])

        func didSend(bodyBytes: Int64, of task: AnySessionTask) { log.withLock { $0.append(bodyBytes) } }
        func didResumeDownload(at offset: Int64, of total: Int64, of task: AnySessionTask) {
            resumed.withLock { $0.append("\(offset) of \(total)") }
        }
    }

    @Test func eachAttemptShowsTheBytesOfItsBodyOnce() async throws {
        let bodies = SentBodies()
        let counter = Counter(Mutex(0))
        let configuration = Session.Configuration.test {
            var policy = RetryPolicy()
            policy.firstDelay = .zero
            policy.methods.insert(.post)
            $0.interceptors = [RetryInterceptor(policy)]
            $0.observers = [bodies]
        }
        try await withServer(configuration: configuration) { exchange in
            _ = try exchange.readBody()
            switch exchange.request.path {
            case "/retried": try exchange.respond(status: counter.next() < 2 ? 503 : 200, text: "x")
            case "/moved": try exchange.respond(status: 307, headers: [("Location", "/x")], text: "")
            default: try exchange.respond(text: "x")
            }
        } test: { _, client in
            func takeSent() -> [Int64] {
                bodies.log.withLock { log in
                    defer { log = [] }
                    return log
                }
            }
            try await client.get("x")
            #expect(takeSent().isEmpty)
            try await client.post("x", body: .text("12345"))
            #expect(takeSent() == [5])
            try await client.post("retried", body: .text("123"))
            #expect(takeSent() == [3, 3])
            try await client.post("moved", body: .text("1234"))
            #expect(takeSent() == [4, 4])
            for try await _ in client.stream("x", method: .post, body: .text("12")) {}
            #expect(takeSent() == [2])
            _ = try await client.task(.put, "x", body: .data(Data(count: 300_000))).value
            #expect(takeSent() == [300_000])
            #expect(bodies.resumed.withLock { $0.isEmpty })
        }
    }

    // MARK: Failures

    @Test func aFailureIsShownBeforeTheRequestIsSentAgain() async throws {
        let counter = Counter(Mutex(0))
        try await withWatcher {
            var policy = RetryPolicy()
            policy.firstDelay = .zero
            $0.interceptors = [RetryInterceptor(policy)]
        } _: { exchange in
            // The first body is shorter than stated.
            if counter.next() > 1 { return try exchange.respond(text: "x") }
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            exchange.close()
        } test: { client, watcher in
            let text: String = try await client.get("x")
            #expect(text == "x")
            #expect(
                Array(watcher.all.prefix(4)) == ["send", "failed truncated-body", "retry after 200", "send"])
        }
    }

    @Test func aTaskThatIsCancelledShowsTheFailureOfItsRequest() async throws {
        let gate = LoopbackServer.Gate()
        try await withWatcher { _ in
        } _: { exchange in
            gate.open()
            try exchange.waitForClientToClose()
        } test: { client, watcher in
            let task = client.task(.get, "x")
            try await gate.wait()
            task.cancel()
            _ = try await failure { try await task.value }
            await client.session.drained()
            #expect(watcher.all == ["send", "failed cancelled", "completed cancelled"])
        }
    }

    // MARK: Fields on the wire

    private final class Numbering: SessionObserver {
        private let count = Mutex(0)
        private let redirects = Mutex<[Request]>([])
        let name: String

        init(_ name: String = "X-Number") { self.name = name }

        var redirected: [Request] { redirects.withLock { $0 } }

        func fields(for request: Request, of task: AnySessionTask) -> Headers {
            count.withLock {
                $0 += 1
                return [name: "\($0)"]
            }
        }
        func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask) {
            redirects.withLock { $0.append(request) }
        }
    }

    @Test func fieldsOfAnObserverAreSentWithOneRequestAndFollowNoRedirect() async throws {
        let (numbering, received) = (Numbering(), Watcher())
        let configuration = Session.Configuration.test { $0.observers = [numbering] }
        try await withServer(configuration: configuration) { exchange in
            received.add(exchange.request["X-Number"] ?? "none")
            try Self.handler(exchange)
        } test: { _, client in
            let response = try await client.response(for: client.request(.get, "moved", headers: ["X-Number": "own"]))
            #expect(response.head.redirects.map(\.status) == [302])
            #expect(received.all == ["1", "2"])
            #expect(numbering.redirected.map { $0.headers["X-Number"] } == ["own"])
        }
    }

    @Test func aFieldOfAnObserverThatCannotBeSentFailsTheTask() async throws {
        let configuration = Session.Configuration.test { $0.observers = [Numbering("X-Number\r\nX-Other")] }
        try await withServer(configuration: configuration, Self.handler) { server, client in
            let error = try await failure { try await client.get("x") }
            #expect(error.kind == .invalidRequest && error.reason.contains("an observer adds"))
            #expect(server.requests.isEmpty)
        }
    }

    @Test func aChallengeIsShownBeforeItsAnswer() async throws {
        try await withWatcher {
            $0.policy = Answering()
        } _: { exchange in
            if exchange.request["Authorization"] == nil {
                try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=\"r\"")])
            } else {
                try exchange.respond(text: "in")
            }
        } test: { client, watcher in
            let text: String = try await client.get("x")
            #expect(text == "in")
            #expect(Array(watcher.all.prefix(4)) == ["send", "head 401", "challenge r", "send"])
        }
    }

    private struct Answering: SessionPolicy {
        @concurrent func answer(
            to challenge: AuthenticationChallenge, for request: Request, of task: AnySessionTask
        ) async throws -> ChallengeDecision? { .use(.user("ada", password: "x")) }
    }

    private final class Counter: Sendable {
        private let count: Mutex<Int>
        init(_ count: consuming Mutex<Int>) { self.count = count }
        func next() -> Int {
            count.withLock {
                $0 += 1
                return $0
            }
        }
    }

    @Test(arguments: ["stream", "download", "policy"])
    func bytesAreThoseThatTheTaskReads(form: String) async throws {
        try await withWatcher { client, watcher in
            switch form {
            case "stream":
                for try await _ in client.stream("x") {}
            case "download":
                try await inTestFolder { folder in _ = try await client.download("x", to: folder.url("file")).value }
            default:
                struct Accepting: SessionPolicy {}
                _ = try await client.get("x") { $0.policy = Accepting() }
            }
            await client.session.drained()
            #expect(watcher.all.filter { $0.hasPrefix("bytes") } == ["bytes body"])
            #expect(watcher.all.filter { $0.hasPrefix("valid") } == ["valid yes"])
        }
    }

    // MARK: The value in a stream of events

    @Test func anEventHasTheValueAsLongAsAHandleHasIt() async throws {
        try await withServer(Self.handler) { _, client in
            let events = client.session.tasks.events
            var task: SessionTask<String>? = client.task(.get, "x", as: String.self)
            _ = try await task?.value
            let _: String = try await client.get("x")
            await client.session.finishTasksAndInvalidate()
            var ends: [TaskRegistry.Completion] = []
            for await event in events { if case .completed(let end) = event { ends.append(end) } }
            #expect(ends.count == 2 && ends[0].value as? String == "body" && ends[1].value == nil)
            withExtendedLifetime(task) {}
            task = nil
            // A loop can hold the last message of the task a moment longer. The time limit of the suite ends the wait.
            while ends[0].value != nil { try await Task.sleep(for: .milliseconds(1)) }
        }
    }
}
