import Synchronization
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
@Suite("Wire: interceptors", .timeLimit(.minutes(1)))
struct InterceptorTests {
    /// Logs its name before the request and after the response.
    private struct Named: Interceptor {
        let name: String
        let log: Log

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            log.add("\(name) in")
            var request = request
            request.headers.append(name: "X-Way", value: name)
            var reply = try await next(request)
            log.add("\(name) out \(reply.status)")
            reply.body = reply.body.map { $0 + Data(name.utf8) }
            return reply
        }
    }

    private final class Log: Sendable {
        private let entries = Mutex<[String]>([])
        func add(_ entry: String) { entries.withLock { $0.append(entry) } }
        var all: [String] { entries.withLock { $0 } }
    }

    private static let way: LoopbackServer.Handler = { exchange in
        let way = exchange.request.headers.filter { $0.name == "X-Way" }.map(\.value)
        try exchange.respond(text: way.joined(separator: ","))
    }

    @Test func sessionInterceptorsWrapThoseOfTheRequest() async throws {
        let log = Log()
        let configuration = Session.Configuration.test {
            $0.interceptors = [Named(name: "a", log: log), Named(name: "b", log: log)]
        }
        try await withServer(configuration: configuration, Self.way) { _, client in
            var request = try client.request(.get, "/")
            request.interceptors = [Named(name: "c", log: log)]
            let response = try await client.session.response(for: request, decode: .string)
            #expect(response.value == "a,b,ccba")
            #expect(log.all == ["a in", "b in", "c in", "c out 200", "b out 200", "a out 200"])
        }
    }

    @Test func interceptorCanAnswerWithoutAServer() async throws {
        struct Cached: Interceptor {
            func intercept(_ request: Request, next: Next) async throws -> Reply {
                Reply(to: request, status: 203, headers: ["X-From": "cache"], body: Data("one\ntwo".utf8))
            }
        }
        try await withServer(configuration: .test { $0.interceptors = [Cached()] }, Self.way) { server, client in
            let response = try await client.session.response(for: client.request(.get, "/"), decode: .string)
            #expect(response.value == "one\ntwo" && response.status == 203 && response.headers["X-From"] == "cache")
            #expect(try await client.task(.get, "/", as: String.self).value == "one\ntwo")
            var lines: [String] = []
            for try await line in client.stream("/").lines { lines.append(line) }
            #expect(lines == ["one", "two"])
            try await inTestFolder { folder in
                let file = try await client.download("/", to: folder.url("file")).value
                #expect(try Data(contentsOf: file) == Data("one\ntwo".utf8))
            }
            #expect(server.counts.requestsReceived == 0)
        }
    }

    /// Sends the request again as long as the response is refused.
    private struct Stubborn: Interceptor {
        func intercept(_ request: Request, next: Next) async throws -> Reply {
            var left = 3
            while true {
                do {
                    return try await next(request)
                } catch {
                    guard left > 0, error.kind == .status else { throw error }
                    left -= 1
                }
            }
        }
    }

    private static func failingThrice() -> LoopbackServer.Handler {
        let count = Atomic<Int>(0)
        let counter = Counter(count)
        return { exchange in
            let isLast = counter.next() >= 4
            try exchange.respond(status: isLast ? 200 : 503, text: isLast ? "at last" : "no")
        }
    }

    private final class Counter: Sendable {
        private let count: Mutex<Int>
        init(_ count: consuming Atomic<Int>) { self.count = Mutex(count.load(ordering: .relaxed)) }
        func next() -> Int {
            count.withLock {
                $0 += 1
                return $0
            }
        }
    }

    @Test(arguments: ["collected", "handle", "stream", "download"])
    func interceptorCanRepeatTheRequest(form: String) async throws {
        let configuration = Session.Configuration.test { $0.interceptors = [Stubborn()] }
        try await withServer(configuration: configuration, Self.failingThrice()) { server, client in
            switch form {
            case "collected": #expect(try await client.get("/", as: String.self) == "at last")
            case "handle": #expect(try await client.task(.get, "/", as: String.self).value == "at last")
            case "stream":
                for try await line in client.stream("/").lines { #expect(line == "at last") }
            default:
                try await inTestFolder { folder in
                    let file = try await client.download("/", to: folder.url("file")).value
                    #expect(try Data(contentsOf: file) == Data("at last".utf8))
                }
            }
            #expect(server.counts.requestsReceived == 4)
        }
    }

    @Test func unusedReplyIsCancelled() async throws {
        struct Twice: Interceptor {
            func intercept(_ request: Request, next: Next) async throws -> Reply {
                _ = try await next(request)
                return try await next(request)
            }
        }
        let configuration = Session.Configuration.test {
            $0.interceptors = [Twice()]
            $0.maximumConnectionsPerHost = 1
        }
        // A stream without a reader would hold the only connection.
        try await withServer(configuration: configuration) { exchange in
            try exchange.writeHead(headers: [("Content-Length", "50000000")])
            try? exchange.streamZeros(count: 50_000_000)
        } test: { server, client in
            var size = 0
            for try await chunk in client.stream("/").chunks { size += chunk.count }
            #expect(size == 50_000_000 && server.counts.requestsReceived == 2)
            #expect(await client.session.tasks.snapshot.isEmpty)
        }
    }

    @Test func interceptorErrorFailsTheTask() async throws {
        struct Broken: Error {}
        struct Throws: Interceptor {
            func intercept(_ request: Request, next: Next) async throws -> Reply { throw Broken() }
        }
        try await withServer(configuration: .test { $0.interceptors = [Throws()] }, Self.way) { server, client in
            let error = try await failure { try await client.get("/") }
            #expect(error.kind == .interceptor && error.underlying is Broken && error.taskID != nil)
            #expect(server.counts.requestsReceived == 0)
        }
    }

    @Test func invalidRequestOfAnInterceptorIsRefused() async throws {
        struct Spoils: Interceptor {
            func intercept(_ request: Request, next: Next) async throws -> Reply {
                var request = request
                request.headers["X-Bad"] = "a\r\nEvil: 1"
                return try await next(request)
            }
        }
        try await withServer(configuration: .test { $0.interceptors = [Spoils()] }, Self.way) { server, client in
            let error = try await failure { try await client.get("/") }
            #expect(error.kind == .invalidRequest && server.counts.requestsReceived == 0)
        }
    }

    /// Waits until it is cancelled.
    private struct Waits: Interceptor {
        let isWaiting: LoopbackServer.Gate

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            isWaiting.open()
            // The gate is never opened: only the cancellation ends this wait.
            try await LoopbackServer.Gate().wait()
            return try await next(request)
        }
    }

    @Test(arguments: ["caller", "handle", "registry"])
    func cancellingReachesAnInterceptor(by way: String) async throws {
        let gate = LoopbackServer.Gate()
        let configuration = Session.Configuration.test { $0.interceptors = [Waits(isWaiting: gate)] }
        try await withServer(configuration: configuration, Self.way) { server, client in
            let error: NetworkError
            switch way {
            case "handle":
                let task = client.task(.get, "/")
                try await gate.wait()
                task.cancel()
                error = try await failure { try await task.value }
            default:
                let task = Task { try await client.get("/") }
                try await gate.wait()
                if way == "caller" { task.cancel() } else { await client.session.tasks.cancelAll() }
                error = try await failure { try await task.value }
            }
            #expect(error.isCancelled && server.counts.requestsReceived == 0)
            await client.session.drained()
        }
    }

    @Test func observersSeeEveryStageInOrder() async throws {
        struct Watcher: SessionObserver {
            let log: Log
            func willSend(_ request: Request, of task: AnySessionTask) { log.add("send \(request.url?.path ?? "")") }
            func didReceive(_ response: ResponseHead, of task: AnySessionTask) { log.add("head \(response.status)") }
            func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask) {
                log.add("redirect \(request.url?.path ?? "")")
            }
            func didObserve(_ event: TaskRegistry.Event) {
                switch event {
                case .resumed: log.add("resumed")
                case .completed(let end): log.add("completed \(end.response?.status ?? 0)")
                case .sessionInvalidated: log.add("invalidated")
                default: log.add("other")
                }
            }
        }
        let (log, second) = (Log(), Log())
        let configuration = Session.Configuration.test { $0.observers = [Watcher(log: log), Watcher(log: second)] }
        try await withServer(configuration: configuration) { exchange in
            if exchange.request.path == "/a" {
                try exchange.respond(status: 302, headers: [("Location", "/b")])
            } else {
                try exchange.respond(text: "b")
            }
        } test: { _, client in
            _ = try await client.get("/a")
            await client.session.finishTasksAndInvalidate()
            #expect(
                log.all == [
                    "resumed", "send /a", "head 302", "redirect /b", "send /b", "head 200", "completed 200",
                    "invalidated",
                ])
            #expect(second.all == log.all)
        }
    }

    @Test func policyRefusesAResponseBeforeItsBodyIsRead() async throws {
        struct NoVideo: SessionPolicy {
            @concurrent func disposition(
                of response: ResponseHead, for task: AnySessionTask
            ) async throws -> ResponseDisposition? {
                response.headers["Content-Type"] == "video/mp4" ? .cancel : nil
            }
        }
        try await withServer(configuration: .test { $0.policy = NoVideo() }) { exchange in
            try exchange.writeHead(headers: [("Content-Type", "video/mp4"), ("Content-Length", "1000000000")])
            try? exchange.streamZeros(count: 1_000_000_000)
        } test: { _, client in
            try await inTestFolder { folder in
                let error = try await failure {
                    try await client.download("/", to: folder.url("file")).value
                }
                #expect(error.isCancelled && error.status == 200)
                #expect(try folder.names.isEmpty)
            }
        }
    }

    private struct NoVideo: SessionPolicy {
        @concurrent func disposition(
            of response: ResponseHead, for task: AnySessionTask
        ) async throws -> ResponseDisposition? {
            response.headers["Content-Type"] == "video/mp4" ? .cancel : nil
        }
    }

    /// The server sends no more until the client disconnects.
    @Test(arguments: [false, true])
    func policyRefusesACollectedResponseAtItsHead(hasHandle: Bool) async throws {
        try await withServer(configuration: .test { $0.policy = NoVideo() }) { exchange in
            try exchange.writeHead(headers: [("Content-Type", "video/mp4"), ("Content-Length", "50000000")])
            try exchange.write([1, 2, 3])
            try exchange.waitForClientToClose()
        } test: { _, client in
            let error = try await failure {
                hasHandle ? try await client.task(.get, "/", as: Data.self).value : try await client.get("/")
            }
            #expect(error.isCancelled && error.status == 200)
            #expect(error.reason.contains("the policy does not want the response"))
        }
    }

    @Test(arguments: [0, 5, 3 << 20])
    func policyAcceptsACollectedResponseWithItsWholeBody(count: Int) async throws {
        try await withServer(configuration: .test { $0.policy = NoVideo() }) { exchange in
            if exchange.request.path == "/chunked" {
                try exchange.writeChunkedHead()
                if count > 0 { try exchange.writeChunk([UInt8](repeating: 7, count: count)) }
                try exchange.endChunks(trailers: [("X-Last", "yes")])
            } else {
                try exchange.respond(body: [UInt8](repeating: 7, count: count))
            }
        } test: { server, client in
            for path in ["/", "/chunked"] {
                let response = try await client.response(for: client.request(.get, path))
                let isWhole = response.value == Data(repeating: 7, count: count)
                #expect(isWhole && response.metrics.decodedBodyBytes == Int64(count))
                #expect(response.trailers["X-Last"] == (path == "/" ? nil : "yes"))
            }
            var request = try client.request(.get, "/")
            request.maximumBodySize = max(0, count - 1)
            if count > 0 {
                let error = try await failure { [request] in try await client.response(for: request) }
                #expect(error.kind == .tooLarge && error.body.count <= max(0, count - 1))
            }
        }
    }
}
#endif
