#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Replays recorded conversations from a file, without their server.
@Suite(.timeLimit(.minutes(1)))
struct RecordingTests {
    private static func serve(_ exchange: LoopbackServer.Exchange) throws {
        switch exchange.request.path {
        case "/json": try exchange.respond(json: ["name": "Ada"])
        case "/bytes": try exchange.respond(body: [0, 255, 254])
        case "/old":
            try exchange.respond(
                status: 302, headers: [("Location", "/json"), ("Set-Cookie", "sid=s3cret; Path=/")], text: "")
        case "/login" where exchange.request["Authorization"] == nil:
            try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=\"x\"")], text: "who?")
        case "/login": try exchange.respond(text: "welcome")
        case "/form": try exchange.respond(text: "filled")
        case "/echo": try exchange.respond(text: String(decoding: try exchange.readBody(), as: UTF8.self))
        case "/gone":
            exchange.close()
        default: try exchange.respond(status: 404, text: "none")
        }
    }

    /// Runs the calls of a program, live and in replay.
    private func runProgram(_ session: Session, _ url: URL) async throws -> [String] {
        let client = Client(baseURL: url, session: session)
        var seen: [String] = []
        seen.append(try await client.get("json", as: [String: String].self)["name"] ?? "")
        seen.append("\(Array(try await client.get("bytes")))")
        let redirected = try await client.response(for: client.request(.get, "old"))
        seen.append("\(redirected.head.redirects.count) \(redirected.value.count)")
        var login = try client.request(.get, "login", query: ["api_key": "s3cret", "page": 1])
        login.credentials = try FixedCredentials([url.absoluteString: .user("ada", password: "s3cret")])
        seen.append(String(decoding: try await client.response(for: login).value, as: UTF8.self))
        for text in ["a", "b", "a"] { seen.append(try await client.post("echo", body: .text(text), as: String.self)) }
        var form = MultipartForm()
        form.append("text", named: "a")
        seen.append(String(try await client.post("form", body: .multipart(form), as: String.self)))
        seen.append("\(try await failure { try await client.get("nothing") }.status ?? 0)")
        seen.append("\(try await failure { try await client.post("gone", body: .text("x")) }.kind)")
        return seen
    }

    @Test func recordingReplaysWithoutTheServer() async throws {
        try await inTestFolder { folder in
            let server = try LoopbackServer(handler: Self.serve)
            let recorder = Recorder(.test())
            let live = try await runProgram(Session(configuration: .test(), recorder: recorder), server.url)
            let expected = [
                "Ada", "[0, 255, 254]", "1 14", "welcome", "a", "b", "a", "filled", "404", "connection-lost",
            ]
            #expect(live == expected)
            try recorder.recording.write(to: folder.url("tape.json"))
            server.stop()

            let text = try folder.text("tape.json")
            #expect(!text.contains("s3cret") && !text.contains("YWRhOnMzY3JldA"))
            #expect(text.contains(#""name\":\"Ada"#) && text.contains(#""base64" : "AP/+""#))

            let recording = try Recording(contentsOf: folder.url("tape.json"))
            var recorded = recorder.recording
            #expect(recorded.exchanges.allSatisfy { $0.details?.started != nil })
            // Times would make each file of the same exchanges another one.
            for index in recorded.exchanges.indices { recorded.exchanges[index].details = nil }
            #expect(recording == recorded)
            let replay = StubTransport(replaying: recording)
            let played = try await runProgram(Session(configuration: .test(), stub: replay), server.url)
            #expect(played == live)
        }
    }

    @Test func eachRecordedResponseIsReplayedOnceByDefault() async throws {
        let exchange = Recording.Exchange(
            request: Recording.Sent(method: "GET", url: "http://h/a", headers: [], body: nil),
            response: Recording.Received(status: 200, headers: ["Content-Type: text/plain"], body: .text("hi")))
        let once = try Client(
            baseURL: "http://h", session: Session(stub: StubTransport(replaying: Recording([exchange]))))
        let text = try await once.get("a", as: String.self)
        #expect(text == "hi")
        let error = try await failure { try await once.get("a") }
        #expect(error.kind == .unsupported && error.reason.contains("no further answer"))
        let always = StubTransport(replaying: Recording([exchange]), repeatsLast: true)
        let client = try Client(baseURL: "http://h", session: Session(stub: always))
        for _ in 0..<3 {
            let text = try await client.get("a", as: String.self)
            #expect(text == "hi")
        }
    }

    @Test func compressedResponsesAreRecordedDecompressed() async throws {
        let zipped: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 7, 0, 0x86, 0xA6, 0x10, 0x36, 5, 0, 0, 0,
        ]
        try await withServer { exchange in
            try exchange.respond(
                headers: [("Content-Encoding", "gzip"), ("Content-Type", "text/plain")], body: zipped)
        } test: { server, _ in
            let recorder = Recorder(.test())
            let client = Client(baseURL: server.url, session: Session(configuration: .test(), recorder: recorder))
            let text = try await client.get("x", as: String.self)
            #expect(text == "hello")
            let response = try #require(recorder.recording.exchanges.first?.response)
            #expect(response.body == .text("hello"))
            #expect(!response.headers.contains { $0.hasPrefix("Content-Encoding") })
            #expect(response.headers.contains("Content-Length: 5"))
        }
    }

    @Test func recordedLoginHoldsNoSecretAndReplays() async throws {
        func login(_ session: Session, _ url: URL) async throws -> String {
            let client = Client(baseURL: url, session: session)
            let answer = try await client.post("token", body: .json(["password": "s3cret"]), as: [String: String].self)
            let parameters = ["refresh_token": answer["access_token"] ?? ""]
            return try await client.post("form", body: .form(parameters), as: String.self)
        }
        try await withServer { exchange in
            switch exchange.request.path {
            case "/token":
                try exchange.respond(status: 307, headers: [("Location", "/token2?code=s3cret#access_token=s3cret")])
            case "/token2": try exchange.respond(json: ["access_token": "s3cret", "name": "Ada"])
            default: try exchange.respond(text: "welcome")
            }
        } test: { server, _ in
            let recorder = Recorder(.test())
            #expect(try await login(Session(configuration: .test(), recorder: recorder), server.url) == "welcome")
            let text = String(decoding: try JSONEncoder().encode(recorder.recording), as: UTF8.self)
            #expect(!text.contains("s3cret"), "\(text)")
            let stub = StubTransport(replaying: recorder.recording)
            #expect(try await login(Session(configuration: .test(), stub: stub), server.url) == "welcome")
        }
    }

    @Test func customRedactionStillMatches() async throws {
        let redaction = Recording.Redaction.secrets.then { exchange in
            exchange.request.body = exchange.request.body.map { _ in .text("gone") }
        }
        let recorder = Recorder(.test(), redaction: redaction)
        try await withServer(Self.serve) { server, _ in
            let live = Client(baseURL: server.url, session: Session(configuration: .test(), recorder: recorder))
            let echo = try await live.post("echo", body: .text("pin=1234"), as: String.self)
            #expect(echo == "pin=1234")
            #expect(recorder.recording.exchanges.first?.request.body == .text("gone"))
            let stub = StubTransport(replaying: recorder.recording, redaction: redaction)
            let replay = Client(baseURL: server.url, session: Session(configuration: .test(), stub: stub))
            let played = try await replay.post("echo", body: .text("pin=9"), as: String.self)
            #expect(played == "pin=1234")
        }
    }

    @Test func invalidRecordingFileIsAClearError() throws {
        let json = Data(#"{"exchanges":[],"format":2}"#.utf8)
        let file = FileManager.default.temporaryDirectory.appending(path: "tern-\(UInt64.random(in: 0 ... .max)).json")
        try json.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        do {
            _ = try Recording(contentsOf: file)
            Issue.record("was taken")
        } catch {
            #expect("\(error)".contains("format 2"))
        }
    }
}
#endif
