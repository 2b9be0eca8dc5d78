import Tern
import TernConcurrency
import TernHTTPCache
import TernTesting
import Testing

@testable import TernInspector

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The page over a real socket.
@Suite("Inspector: server", .timeLimit(.minutes(1))) struct InspectorServerTests {
    @Test func requestsAppearWithTheirPhases() async throws {
        try await InspectedSession.run { inspected, server, client in
            try await client.get("users/7?page=2") { $0.label = "feed" }
            let task = try await inspected.task { $0["state"] == "done" }
            #expect(task["method"] == "GET" && task["status"] == 200 && task["label"] == "feed")
            #expect(task["url"]?.string == "http://127.0.0.1:\(server.port)/users/7?page=2")
            #expect(task["version"] == "HTTP/1.1" && task["isReused"] == false)
            #expect(task["phases"]?["connect"]?.number != nil && task["phases"]?["wait"]?.number != nil)
            #expect(try #require(task["duration"]?.number) > 0)
            // Milliseconds since 1970.
            #expect(try #require(task["start"]?.number) > 1_700_000_000_000)
            let first = try #require(task["connection"]?.integer)
            try await client.get("again")
            let second = try await inspected.task { $0["url"]?.string?.hasSuffix("/again") == true && $0["end"] != 0 }
            #expect(second["connection"]?.integer == first && second["isReused"] == true)
        }
    }

    @Test func redirectsAndRetriesAreRequestsOfTheirTask() async throws {
        let retrying: (inout Session.Configuration) -> Void = {
            var policy = RetryPolicy()
            policy.firstDelay = .zero
            $0.interceptors = [RetryInterceptor(policy)]
        }
        let handler: LoopbackServer.Handler = { exchange in
            if exchange.request.path == "/start" {
                return try exchange.respond(status: 302, headers: [("Location", "/end?token=s3cret")])
            }
            try exchange.respond(status: exchange.number < 4 ? 503 : 200, headers: [("X-Kind", "a")], text: "x")
        }
        try await InspectedSession.run(change: retrying, answering: handler) { inspected, _, client in
            try await client.get("start", headers: ["X-Mine": "b"])
            let task = try await inspected.task { $0["state"] == "done" }
            let attempts = try #require(task["attempts"]?.array)
            #expect(attempts.map { $0["cause"] } == ["first", "redirect", "retry", "redirect"])
            #expect(attempts.map { $0["status"] } == [302, 503, 302, 200])
            let details = try await inspected.details(of: task)
            let all = try #require(details["attempts"]?.array)
            #expect(all.allSatisfy { $0["requestHeaders"]?.array?.contains(["X-Mine", "b"]) == true })
            #expect(all[3]["responseHeaders"]?.array?.contains(["X-Kind", "a"]) == true)
            #expect(all[1]["url"]?.string?.hasSuffix("/end?token=redacted") == true)
            #expect(details["facts"]?.array?.contains { $0["name"] == "Peer" } == true)
        }
    }

    @Test func failuresHaveTheirReason() async throws {
        let port = try LoopbackServer.refusingPort()
        try await InspectedSession.run { inspected, _, client in
            _ = try? await client.get("http://127.0.0.1:\(port)/?key=s3cret")
            let task = try await inspected.task { $0["state"] == "failed" }
            #expect(task["error"] == "connection-refused" && task["status"] == nil)
            let reason = try #require(try await inspected.details(of: task)["error"]?.string)
            #expect(reason.contains("refused") && !reason.contains("s3cret"))
            let totals = try await inspected.event { $0["totals"] }
            #expect(totals["failed"] == 1 && totals["ended"] == 1)
        }
    }

    @Test func tasksThatRunAreShown() async throws {
        let (arrived, gate) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.writeHead(headers: [("Content-Length", "10")])
            try exchange.write("12345")
            arrived.open()
            try exchange.wait(for: gate)
            try exchange.write("67890")
        }
        try await InspectedSession.run(answering: handler) { inspected, server, client in
            let stream = client.stream("x")
            try await arrived.wait()
            var chunks = stream.chunks.makeAsyncIterator()
            let first = try await chunks.next()
            #expect(first?.count == 5)
            let task = try await inspected.task { $0["received"] == 5 }
            #expect(task["state"] == "running" && task["status"] == 200 && task["total"] == 10)
            #expect(task["duration"] == nil)
            let open = try await inspected.event { $0["connections"]?.array?.first }
            #expect(open["origin"]?.string == "http://127.0.0.1:\(server.port)" && open["active"] == 1)
            stream.task.pause()
            _ = try await inspected.task { $0["state"] == "paused" }
            stream.task.resume()
            gate.open()
            while try await chunks.next() != nil {}
            _ = try await inspected.task { $0["state"] == "done" }
        }
    }

    @Test func secretsNeverLeave() async throws {
        let cache = HTTPCache.memory()
        let handler: LoopbackServer.Handler = { exchange in
            let fields = [
                ("Set-Cookie", "id=s3cret"), ("X-Api-Key", "s3cret"), ("Cache-Control", "max-age=60"),
                ("Link", "</x?token=s3cret>; rel=next"),
            ]
            if exchange.request.path == "/start" {
                return try exchange.respond(status: 302, headers: fields + [("Location", "/end?password=s3cret")])
            }
            try exchange.respond(status: 200, headers: fields, text: "s3cret")
        }
        let change: (inout Session.Configuration) -> Void = { $0.cache = cache }
        try await InspectedSession.run(change: change, answering: handler) { inspected, server, client in
            _ = try await client.send(
                .post, "http://ada:s3cret@127.0.0.1:\(server.port)/start?api_key=s3cret&page=2#access_token=s3cret",
                headers: ["Authorization": "Bearer s3cret", "X-Auth-Token": "s3cret"], body: .text("s3cret"))
            _ = try await client.get("end?token=s3cret")
            await cache.flush()
            let task = try await inspected.task { $0["state"] == "done" && $0["attempts"]?.array?.count == 2 }
            #expect(task["url"]?.string?.contains("page=2") == true)
            let details: String = try await inspected.viewer.get("tasks/\(task["number"]?.integer ?? 0)")
            #expect(details.contains("<redacted>"))
            let stored: String = try await inspected.viewer.get("cache")
            #expect(stored.contains("/end"))
            let har: String = try await inspected.viewer.get("requests.har")
            #expect(har.contains("\"entries\""))
            let event = try await inspected.event { "\($0)" }
            for text in [details, stored, har, event, "\(task)"] { #expect(!text.contains("s3cret"), "\(text)") }
        }
    }

    @Test func exportsAreHARFiles() async throws {
        let handler: LoopbackServer.Handler = { exchange in
            exchange.request.path == "/a"
                ? try exchange.respond(status: 302, headers: [("Location", "/b")]) : try exchange.respond(text: "x")
        }
        try await InspectedSession.run(answering: handler) { inspected, _, client in
            try await client.get("a")
            let response = try await inspected.viewer.response(for: inspected.viewer.request(.get, "requests.har"))
            #expect(response.headers["Content-Disposition"] == "attachment; filename=\"requests.har\"")
            let recording = try Recording(har: response.value)
            #expect(recording.exchanges.map { $0.response?.status } == [302, 200])
            #expect(recording.exchanges.allSatisfy { $0.details?.started != nil })
        }
    }

    @Test func answersOfACacheAreNamed() async throws {
        let cache = HTTPCache.memory()
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "x")
        }
        let change: (inout Session.Configuration) -> Void = { $0.cache = cache }
        try await InspectedSession.run(change: change, answering: handler) { inspected, _, client in
            for _ in 0..<2 { try await client.get("x") }
            let task = try await inspected.task { $0["cache"] == "stored" }
            #expect(task["attempts"]?.array?.isEmpty == true && task["status"] == 200)
            let stored: [JSONValue] = try await inspected.viewer.get("cache")
            #expect(stored.count == 1 && stored[0]["isWhole"] == true && stored[0]["bytes"] == 1)
            #expect(try #require(stored[0]["timeToLive"]?.integer) > 0)
        }
    }

    // MARK: Access

    @Test func otherRequestsAreRefusedOnTheWire() async throws {
        try await InspectedSession.run { inspected, _, _ in
            func expect(
                _ status: Int, of path: String = "", by method: Request.Method = .get, headers: Headers = [:]
            ) async throws {
                let request = try inspected.viewer.request(method, path, headers: headers)
                let response = try await inspected.viewer.session.response(for: request)
                #expect(response.head.status == status, "\(method) \(path.prefix(80)) \(headers)")
                #expect(!response.headers.contains { $0.name.hasPrefix("Access-Control") })
                #expect(response.headers["Cache-Control"] == "no-store")
                #expect(response.headers["Cross-Origin-Resource-Policy"] == "same-origin")
            }
            try await expect(200)
            try await expect(200, by: .head)
            try await expect(403, headers: ["Host": "attacker.example"])
            try await expect(403, of: "events", headers: ["Host": "attacker.example:80"])
            try await expect(403, headers: ["Origin": "http://attacker.example"])
            try await expect(403, headers: ["Sec-Fetch-Site": "cross-site"])
            for method in [Request.Method.post, .delete, .options] { try await expect(405, by: method) }
            let root = "http://127.0.0.1:\(inspected.url.port ?? 0)"
            for path in ["/", "/favicon.ico", "/0123456789abcdef0123456789abcdef/", "/x/events"] {
                try await expect(404, of: root + path)
            }
            try await expect(404, of: "tasks/1")
            try await expect(414, of: "?" + String(repeating: "a", count: 10_000))
        }
    }

    @Test func answersHaveNoFieldForOtherOrigins() async throws {
        try await InspectedSession.run { inspected, _, client in
            try await client.get("x")
            for path in ["", "tasks/1", "cache", "requests.har"] {
                let request = try inspected.viewer.request(
                    .get, path, headers: ["Origin": "http://127.0.0.1:\(inspected.url.port ?? 0)"])
                let response = try await inspected.viewer.session.response(for: request)
                #expect(response.head.status == 200, "\(path)")
                #expect(!response.headers.contains { $0.name.lowercased().hasPrefix("access-control") })
                #expect(response.headers["X-Content-Type-Options"] == "nosniff")
                #expect(response.headers["Referrer-Policy"] == "no-referrer")
            }
        }
    }

    @Test func viewersAreLimited() async throws {
        try await InspectedSession.run { inspected, _, _ in
            var streams: [ResponseStream] = []
            for _ in 0..<InspectorServer.viewerLimit {
                let stream = inspected.viewer.stream("events")
                #expect(try await stream.response.status == 200)
                streams.append(stream)
            }
            let request = try inspected.viewer.request(.get, "events")
            #expect(try await inspected.viewer.session.response(for: request).head.status == 503)
            // The others go on.
            var lines = streams[0].lines.makeAsyncIterator()
            #expect(try await lines.next()?.hasPrefix("data: ") == true)
            for stream in streams { stream.task.cancel() }
        }
    }

    // MARK: The end

    @Test func theEndOfTheSessionEndsThePage() async throws {
        try await InspectedSession.run { inspected, _, client in
            try await client.get("x")
            let stream = inspected.viewer.stream("events")
            #expect(try await stream.response.status == 200)
            await inspected.session.finishTasksAndInvalidate()
            try await inspected.page.value
            // Nobody listens any more.
            let error = await #expect(throws: NetworkError.self) { try await inspected.viewer.get("") }
            #expect(error?.kind == .connectionRefused)
            await #expect(throws: NetworkError.self) {
                for try await _ in stream.lines {}
                throw NetworkError(.connectionLost, reason: "the stream has ended cleanly")
            }
        }
    }

    @Test func aCancellationEndsThePageBesideAViewerThatDoesNotRead() async throws {
        try await InspectedSession.run { inspected, _, client in
            let stream = inspected.viewer.stream("events")
            #expect(try await stream.response.status == 200)
            // More than the sockets hold.
            for number in 0..<400 {
                try await client.get("x?\(String(repeating: "a", count: 4_000))&n=\(number)")
                if number % 20 == 0 { _ = try await inspected.task { $0["state"] == "done" } }
            }
            inspected.page.cancel()
            try await inspected.page.value
            stream.task.cancel()
        }
    }

    @Test func aSessionThatHasEndedHasNoPage() async throws {
        var configuration = Session.Configuration()
        configuration.observers = [SessionInspector()]
        let session = Session(configuration: configuration)
        await session.invalidateAndCancel()
        try await session.inspect { Issue.record("\($0)") }
    }

    @Test func errorsNameTheirCause() async throws {
        let missing = await #expect(throws: NetworkError.self) {
            try await Session(configuration: Session.Configuration()).inspect { Issue.record("\($0)") }
        }
        #expect(missing?.kind == .invalidRequest && missing?.reason.contains("SessionInspector") == true)
        let server = try LoopbackServer { try $0.respond() }
        defer { server.stop() }
        var configuration = Session.Configuration()
        configuration.observers = [SessionInspector()]
        let session = Session(configuration: configuration)
        let taken = await #expect(throws: NetworkError.self) {
            try await session.inspect(port: server.port) { Issue.record("\($0)") }
        }
        #expect(taken?.kind == .connectionFailed && taken?.reason.contains("127.0.0.1:\(server.port)") == true)
    }
}
