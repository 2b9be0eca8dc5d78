import Synchronization
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Calls with settings of their own, in the forms in which users write them.
@Suite("Wire: settings of a call", .timeLimit(.minutes(1)))
struct CallSettingsTests {
    private static let handler: LoopbackServer.Handler = { exchange in
        switch exchange.request.path {
        case "/moved": try exchange.respond(status: 302, headers: [("Location", "/there")], text: "")
        case "/missing": try exchange.respond(status: 404, headers: [("Content-Type", "text/html")], text: "none")
        default:
            let body = String(decoding: try exchange.readBody(), as: UTF8.self)
            try exchange.respond(text: "\(exchange.request.method) \(exchange.request.target) \(body)")
        }
    }

    @Test func aCallChangesItsRequest() async throws {
        try await withServer(Self.handler) { _, client in
            let text: String = try await client.get("moved") {
                $0.redirects = .stop
                $0.validation = .any
            }
            #expect(text.isEmpty)
            let followed: String = try await client.get("moved")
            #expect(followed == "GET /there ")
            let missing = try await client.get("missing", as: String.self) { $0.validation = .any }
            #expect(missing == "none")
            let head = try await client.head("moved") {
                $0.redirects = .stop
                $0.validation = .any
            }
            #expect(head.status == 302)
            let task = client.task(.post, "x", body: .text("body")) { $0.label = "named" }
            #expect(task.label == "named")
            #expect(String(decoding: try await task.value, as: UTF8.self) == "POST /x body")
        }
    }

    @Test func anErrorOfTheChangeFailsTheCallAndTheTask() async throws {
        struct Unencodable: Encodable, Sendable {
            func encode(to encoder: any Encoder) throws {
                throw EncodingError.invalidValue(0, .init(codingPath: [], debugDescription: "no"))
            }
        }
        try await withServer(Self.handler) { server, client in
            await expectError(.invalidRequest) {
                try await client.get("x") { request throws(NetworkError) in try request.setParameters(Unencodable()) }
            }
            let task = client.task(.get, "x") { request throws(NetworkError) in
                try request.setParameters(Unencodable())
            }
            await expectError(.invalidRequest) { _ = try await task.value }
            try await server.wait { $0.requestsReceived == 0 }
        }
    }

    @Test func oneLimitOfACallEndsIt() async throws {
        try await withServer {
            try $0.wait(for: LoopbackServer.Gate())
        } test: { _, client in
            await expectError(.totalTimedOut) {
                try await client.get("x") { $0.timeouts.total = .milliseconds(50) }
            }
        }
    }

    @Test func aSessionIsMadeWithInterceptors() async throws {
        struct Marking: Interceptor {
            func intercept(_ request: Request, next: Next) async throws -> Reply {
                var request = request
                request.body = .text("marked")
                return try await next(request)
            }
        }
        try await withServer(Self.handler) { server, _ in
            let client = try Client(baseURL: server.url.absoluteString, interceptors: [Marking()])
            let text: String = try await client.post("x")
            #expect(text == "POST /x marked")
            await client.session.finishTasksAndInvalidate()
        }
    }

    @Test func urlsSegmentsAndLiteralsAreSent() async throws {
        try await withServer(Self.handler) { server, client in
            let whole: String = try await client.get(server.url.appending(path: "a b"), query: ["x": 1])
            #expect(whole == "GET /a%20b?x=1 ")
            let name = "../x?y#z"
            let escaped: String = try await client.get(path: ["a b", name])
            #expect(escaped == "GET /a%20b/..%2Fx%3Fy%23z ")
            let json: String = try await client.post("x", body: .json(["a": 1, "b": ["x", nil, true, 1.5]]))
            #expect(json.contains("\"a\":1") && json.contains("[\"x\",null,true,1.5]"))
            let same: String = try await client.post("x", body: .json(["name": "Ada"]))
            #expect(same == "POST /x {\"name\":\"Ada\"}")
            await expectError(.invalidRequest) { try await client.get(path: ["a", ".."]) }
        }
    }

    @Test func eachVerbEscapesItsSegments() async throws {
        try await withServer(Self.handler) { server, client in
            let path = ["a b", "../x"]
            let head = try await client.head(path: path, query: ["x": 1])
            let sent = try #require(server.requests.last)
            #expect(head.status == 200 && sent.method == "HEAD" && sent.target == "/a%20b/..%2Fx?x=1")
            await expectError(.invalidRequest) { _ = try await client.head(path: ["a", ".."]) }
            #expect(try await client.post(path: path, body: .text("1"), as: String.self) == "POST /a%20b/..%2Fx 1")
            #expect(try await client.put(path: path, body: .text("2"), as: String.self) == "PUT /a%20b/..%2Fx 2")
            #expect(try await client.patch(path: path, body: .text("3"), as: String.self) == "PATCH /a%20b/..%2Fx 3")
            let deleted = try await client.delete(path: path, query: ["x": 1], as: String.self)
            #expect(deleted == "DELETE /a%20b/..%2Fx?x=1 ")
            let calls = [
                try await client.post(path: path), try await client.put(path: path), try await client.patch(path: path),
                try await client.delete(path: path) { $0.headers["X-Test"] = "1" },
            ]
            let texts = calls.map { String(decoding: $0, as: UTF8.self) }
            #expect(texts == ["POST", "PUT", "PATCH", "DELETE"].map { "\($0) /a%20b/..%2Fx " })
            let request = try client.request(.put, path: path, query: ["x": 1]) { $0.label = "named" }
            #expect(request.urlString.hasSuffix("/a%20b/..%2Fx?x=1") && request.label == "named")
            await expectError(.invalidRequest) { try await client.delete(path: ["a", ".."]) }
        }
    }

    @Test func aStreamIsASequenceOfChunks() async throws {
        try await withServer(Self.handler) { _, client in
            var received = Data()
            for try await chunk in client.stream("x", query: ["all": .null]) { received += chunk }
            #expect(String(decoding: received, as: UTF8.self) == "GET /x?all ")
        }
    }

    @Test func aCookieIsStoredFromItsField() async throws {
        try await withServer {
            try $0.respond(text: $0.request["Cookie"] ?? "none")
        } test: { server, _ in
            let store = CookieStore()
            try store.store("id=7; Path=/", for: server.url)
            var configuration = Session.Configuration()
            configuration.cookies = .store(store)
            let client = Client(baseURL: server.url, session: Session(configuration: configuration))
            let text: String = try await client.get("x")
            #expect(text == "id=7")
            #expect(throws: Cookie.Refusal.self) { try store.store("id=8; Domain=other.example", for: server.url) }
            #expect(throws: Cookie.Refusal.self) { try store.store("id=8", for: URL(filePath: "/x")) }
            #expect(store.cookies.map(\.value) == ["7"])
        }
    }

    private func expectError(
        _ kind: NetworkError.Kind, _ call: () async throws -> Void, location: SourceLocation = #_sourceLocation
    ) async {
        let error = await #expect(throws: NetworkError.self, sourceLocation: location) { try await call() }
        #expect(error?.kind == kind, sourceLocation: location)
    }

    // MARK: Pages

    private static let pages: LoopbackServer.Handler = { exchange in
        let next: String? =
            switch exchange.request.target {
            case "/list": "<?page=2>; rel=\"next\""
            case "/list?page=2": "</list?page=1>; rel=prev, </list?page=3>; rel=\"next\""
            case "/loop": "</loop>; rel=next"
            case "/away": "<http://other.example/list>; rel=next"
            case let target where target.hasPrefix("/endless"): "</endless?\(exchange.number)>; rel=next"
            default: nil
            }
        try exchange.respond(
            headers: [("Content-Type", "application/json")] + (next.map { [("Link", $0)] } ?? []),
            text: "[\"\(exchange.request.target)\", \"\(exchange.request["X-Key"] ?? "")\"]")
    }

    @Test func pagesFollowTheirLinks() async throws {
        try await withServer(Self.pages) { _, client in
            var values: [[String]] = []
            for try await page in client.pages("list", headers: ["X-Key": "k"], as: [String].self) {
                values.append(page.value)
            }
            #expect(values == [["/list", "k"], ["/list?page=2", "k"], ["/list?page=3", "k"]])
        }
    }

    @Test(arguments: [("loop", 1), ("away", 1), ("endless", 5)])
    func pagesThatLeadNowhereFail(path: String, count: Int) async throws {
        try await withServer(Self.pages) { server, client in
            var received = 0
            await expectError(.redirect) {
                for try await _ in client.pages(path, limit: 5, as: [String].self) { received += 1 }
            }
            #expect(received == count)
            try await server.wait { $0.requestsReceived == count }
        }
    }

    /// A server that has moved, for example to https, answers each page with its new place in Link.
    @Test func pagesGoOnBehindARedirectWithoutSecrets() async throws {
        try await withServer { exchange in
            let isFirst = exchange.request.target == "/list"
            try exchange.respond(
                headers: [("Content-Type", "application/json")] + (isFirst ? [("Link", "</more>; rel=next")] : []),
                text: "[\"\(exchange.request.target)\", \"\(exchange.request["Authorization"] ?? "")\"]")
        } test: { newServer, _ in
            let place = newServer.url("/list").absoluteString
            try await withServer { exchange in
                try exchange.respond(status: 301, headers: [("Location", place)])
            } test: { _, client in
                var values: [[String]] = []
                let headers: Headers = ["Authorization": "Bearer t"]
                for try await page in client.pages("list", headers: headers, as: [String].self) {
                    values.append(page.value)
                }
                #expect(values == [["/list", ""], ["/more", ""]])
            }
        }
    }

    @Test func aClosureNamesTheNextPage() async throws {
        try await withServer(Self.pages) { _, client in
            let pages = client.pages("a", as: [String].self) { response throws(NetworkError) in
                response.value[0] == "/a" ? try client.request(.get, "b") : nil
            }
            var values: [String] = []
            for try await page in pages { values.append(page.value[0]) }
            for try await page in pages { values.append(page.value[0]) }
            #expect(values == ["/a", "/b", "/a", "/b"])
            let failing = client.pages("a", as: [String].self) { response throws(NetworkError) in
                try client.request(.get, "ftp://x")
            }
            await expectError(.invalidRequest) { for try await _ in failing {} }
        }
    }

    // MARK: Rate limits

    @Test func requestsWaitForTheirTurnAndForTheServer() async throws {
        let waits = Mutex<[Duration]>([])
        let clock = RecordingClock { duration in waits.withLock { $0.append(duration) } }
        let handler: LoopbackServer.Handler = { exchange in
            let isLast = exchange.number == 3
            try exchange.respond(headers: isLast ? [("RateLimit", "\"default\";r=0;t=900")] : [], text: "")
        }
        try await withServer(handler) { server, _ in
            let limiter = RateLimitInterceptor(requestsPerSecond: 10, maximumWait: .seconds(20), clock: clock)
            let client = try Client(baseURL: server.url.absoluteString, interceptors: [limiter])
            for _ in 0..<4 { try await client.get("x") }
            #expect(waits.withLock { $0 } == [.milliseconds(100), .milliseconds(100), .seconds(20)])
            await client.session.finishTasksAndInvalidate()
        }
    }

    @Test func aWaitForATurnIsCancelled() async throws {
        try await withServer(Self.handler) { server, _ in
            let limiter = RateLimitInterceptor(requestsPerSecond: 0.001)
            let client = try Client(baseURL: server.url.absoluteString, interceptors: [limiter])
            try await client.get("x")
            let task = client.task(.get, "x")
            task.cancel()
            await expectError(.cancelled) { _ = try await task.value }
            try await server.wait { $0.requestsReceived == 1 }
            await client.session.finishTasksAndInvalidate()
        }
    }
}

/// A clock whose sleeps end at once and advance its time. Records them.
private final class RecordingClock: Clock {
    struct Instant: InstantProtocol {
        var offset = Duration.zero
        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private let time = Mutex(Instant())
    private let record: @Sendable (Duration) -> Void

    init(record: @escaping @Sendable (Duration) -> Void) { self.record = record }

    var now: Instant { time.withLock { $0 } }
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        record(now.duration(to: deadline))
        time.withLock { $0 = max($0, deadline) }
    }
}
