import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes recordings as HAR files, and plays them.
@Suite(.timeLimit(.minutes(1)))
struct HARWritingTests {
    /// A recorder over a server that is a stub.
    private static func recorder(
        redaction: Recording.Redaction = .secrets, _ respond: @escaping StubTransport.Respond
    ) -> Recorder {
        var wire = Session.Configuration()
        wire.stub = StubTransport(respond: respond)
        return Recorder(wire, redaction: redaction)
    }

    private static func client(_ session: Session) throws -> Client {
        try Client(baseURL: "https://api.example.com", session: session)
    }

    private static func serve(_ call: StubTransport.Call) throws -> StubTransport.Answer {
        switch call.path {
        case "/text": .text("Zoë", headers: ["Set-Cookie": "sid=s3cret; Path=/; HttpOnly", "X-Token": "s3cret"])
        case "/bytes": .data(Data([0, 255, 254]), contentType: "image/png")
        case "/old":
            .text("moved", status: 302, headers: ["Location": "/text?token=s3cret&page=2#access_token=s3cret"])
        case "/login": .text(#"{"access_token":"s3cret","name":"Ada"}"#, contentType: "application/json")
        case "/echo": .data(call.body)
        case "/none": .status(404)
        default: throw StubTransport.Failure(.connectionLost, "the server went away")
        }
    }

    /// Runs the calls of a program, live and in replay.
    private static func runProgram(_ session: Session) async throws -> [String] {
        let client = try client(session)
        var seen: [String] = []
        seen.append(try await client.get("text", query: ["api_key": "s3cret"], as: String.self))
        seen.append("\(Array(try await client.get("bytes")))")
        let redirected = try await client.response(for: client.request(.get, "old"))
        seen.append("\(redirected.head.redirects.map(\.status)) \(redirected.value.count)")
        let login = try client.request(
            .post, "login", headers: ["Authorization": "Bearer s3cret"],
            body: .form(["user": "ada", "password": "s3cret"]))
        seen.append("\(try await client.response(for: login).value.count > 0)")
        var form = MultipartForm()
        form.append("b", named: "a")
        form.append(Data([0, 159]), named: "f", filename: "f.bin", contentType: "application/octet-stream")
        seen.append("\(try await client.post("echo", body: .multipart(form)).contains(159))")
        seen.append("\(Array(try await client.post("echo", body: .data(Data([255, 0])))))")
        for path in ["none", "gone"] {
            do throws(NetworkError) {
                _ = try await client.get(path)
            } catch {
                seen.append("\(error.kind) \(error.status ?? 0)")
            }
        }
        return seen
    }

    @Test func recordingInAHARFileReplaysTheSame() async throws {
        let recorder = Self.recorder(Self.serve)
        let live = try await Self.runProgram(Session(recorder: recorder))
        let expected = [
            "Zoë", "[0, 255, 254]", "[302] 4", "true", "true", "[255, 0]", "status 404", "connection-lost 0",
        ]
        #expect(live == expected)
        let har = try recorder.recording.har()
        #expect(!String(decoding: har, as: UTF8.self).contains("s3cret"))
        let recording = try Recording(har: har)
        let played = try await Self.runProgram(Session(stub: StubTransport(replaying: recording)))
        #expect(played == live)

        // The entries are those of the recording; only times are rounded.
        var (left, right) = (recorder.recording, recording)
        for index in left.exchanges.indices { left.exchanges[index].details = nil }
        for index in right.exchanges.indices { right.exchanges[index].details = nil }
        #expect(left == right)
        #expect(try Recording(har: recording.har()) == recording)
    }

    @Test func entriesHaveTheFieldsOfTheFormat() async throws {
        let recorder = Self.recorder(Self.serve)
        _ = try await Self.runProgram(Session(recorder: recorder))
        let file = try TernJSONDecoder().decode(JSONValue.self, from: recorder.recording.har())
        let log = try #require(file["log"])
        #expect(log["version"] == "1.2" && log["creator"]?["name"] == "Tern")
        let entries = try #require(log["entries"]?.array)
        #expect(entries.count == 9)
        for entry in entries {
            let names: Set = ["startedDateTime", "time", "request", "response", "cache", "timings"]
            #expect(entry.object.map { names.isSubset(of: $0.keys) } == true)
            let request = [
                "method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize",
            ]
            #expect(request.allSatisfy { entry["request"]?[$0] != nil })
            let response = [
                "status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL", "headersSize",
                "bodySize",
            ]
            #expect(response.allSatisfy { entry["response"]?[$0] != nil })
            #expect(entry["response"]?["content"]?["size"] != nil && entry["response"]?["content"]?["mimeType"] != nil)
            #expect(["send", "wait", "receive"].allSatisfy { (entry["timings"]?[$0]?.number ?? -1) >= 0 })
            #expect(["blocked", "dns", "connect", "ssl"].allSatisfy { entry["timings"]?[$0] == -1 })
        }
        let text = entries[0]
        #expect(text["request"]?["queryString"] == [["name": "api_key", "value": "redacted"]])
        #expect(
            text["response"]?["cookies"] == [
                ["name": "sid", "value": "<redacted>", "path": "/", "httpOnly": true, "secure": false]
            ])
        #expect(text["response"]?["content"]?["text"] == "Zoë" && text["response"]?["content"]?["size"] == 4)
        let bytes = entries[1]["response"]?["content"]
        #expect(bytes?["encoding"] == "base64" && bytes?["text"] == "AP/+" && bytes?["mimeType"] == "image/png")
        #expect(entries[2]["response"]?["status"] == 302)
        #expect(
            entries[2]["response"]?["redirectURL"] == "/text?token=redacted&page=2#access_token=redacted")
        #expect(entries[3]["request"]?["url"] == "https://api.example.com/text?token=redacted&page=2")
        let form = entries[4]["request"]?["postData"]
        #expect(form?["mimeType"]?.string?.hasPrefix("application/x-www-form-urlencoded") == true)
        #expect(form?["text"] == "user=ada&password=redacted" || form?["text"] == "password=redacted&user=ada")
        #expect(entries[5]["request"]?["postData"]?["encoding"] == "base64")
        let gone = entries[8]["response"]
        #expect(gone?["status"] == 0 && gone?["_errorKind"] == "connection-lost")
        #expect(gone?["_error"]?.string?.contains("went away") == true)
    }

    // MARK: Secrets

    @Test func secretsOfAnUnredactedRecordingAreHiddenInTheFile() async throws {
        let recorder = Self.recorder(redaction: .none, Self.serve)
        _ = try await Self.runProgram(Session(recorder: recorder))
        #expect("\(recorder.recording)".contains("s3cret"))
        #expect(!String(decoding: try recorder.recording.har(), as: UTF8.self).contains("s3cret"))
        #expect(String(decoding: try recorder.recording.har(redaction: .none), as: UTF8.self).contains("s3cret"))
    }

    @Test func revealedNamesStay() throws {
        var exchange = Recording.Exchange(
            request: Recording.Sent(
                method: "GET", url: "https://h/?token=t1&api_key=t2", headers: ["X-Token: t3", "X-API-Key: t4"]))
        exchange.response = Recording.Received(status: 200, body: .text(#"{"token":"t5","secret":"t6"}"#))
        let recording = Recording([exchange])
        func shown(_ revealed: RevealedValues) throws -> [String] {
            let text = String(decoding: try recording.har(redaction: .secrets(revealing: revealed)), as: UTF8.self)
            return (1...6).map { "t\($0)" }.filter { text.contains($0) }
        }
        #expect(try shown(.none).isEmpty)
        #expect(try shown(["Token", "X-API-Key"]) == ["t1", "t4", "t5"])
        #expect(try shown(.all).count == 6)
    }

    /// Secrets are hidden before a body is cut: the rest of a cut name would be no secret.
    @Test func secretsAreHiddenBeforeABodyIsCut() throws {
        let body = #"{"password":"s3cret-s3cret"}"#
        let recording = Recording([
            Recording.Exchange(
                request: Recording.Sent(method: "POST", url: "https://h/", body: .text(body)),
                response: Recording.Received(status: 200, body: .text(body)))
        ])
        for limit in 0..<body.utf8.count {
            let text = String(decoding: try recording.har(bodyLimit: limit), as: UTF8.self)
            #expect(!text.contains("s3c"))
        }
    }

    // MARK: Limits

    @Test(arguments: [
        (Data("12345678".utf8), 4, "1234", Optional<String>.none), (Data("123ä5".utf8), 4, "123", nil),
        (Data("12345678".utf8), 0, "", nil), (Data("12345678".utf8), -1, "", nil),
        (Data([0, 255, 254, 253]), 2, "AP8=", "base64"),
    ])
    func longBodyIsCutAndSaysSo(body: Data, limit: Int, text: String, encoding: String?) async throws {
        let recorder = Self.recorder { _ in .data(body) }
        let live = try Self.client(Session(recorder: recorder))
        #expect(try await live.post("a", body: .data(body)) == body)
        let har = try recorder.recording.har(bodyLimit: limit)
        let entry = try #require(
            try TernJSONDecoder().decode(JSONValue.self, from: har)["log"]?["entries"]?[0])
        let kept = try #require(encoding == nil ? text.utf8.count : Data(base64Encoded: text)?.count)
        let content = try #require(entry["response"]?["content"])
        let postData = try #require(entry["request"]?["postData"])
        for part in [content, postData] {
            #expect(part["text"]?.string == text && part["encoding"]?.string == encoding)
            #expect(part["comment"]?.string == "the first \(kept) of \(body.count) bytes of the body")
        }
        #expect(content["size"]?.integer == Int64(body.count))
        #expect(entry["request"]?["bodySize"]?.integer == Int64(body.count))

        let recording = try Recording(har: har)
        #expect(recording.exchanges[0].request.cut == Recording.Cut(wholeSize: Int64(body.count)))
        #expect(recording.exchanges[0].response?.cut == Recording.Cut(wholeSize: Int64(body.count)))
        let client = try Self.client(Session(stub: StubTransport(replaying: recording)))
        do {
            _ = try await client.post("a", body: .data(body))
            Issue.record("a part of the body was taken for all of it")
        } catch {
            #expect(error.kind == .truncatedBody)
            #expect(error.reason.contains("the recording has \(kept) of \(body.count) bytes of the body"))
        }
        #expect(try Recording(har: recording.har()) == recording)
    }

    @Test func bodyAtTheLimitIsWhole() async throws {
        let recorder = Self.recorder { _ in .text("1234") }
        _ = try await Self.client(Session(recorder: recorder)).get("a")
        let recording = try Recording(har: recorder.recording.har(bodyLimit: 4))
        #expect(recording.exchanges[0].response?.cut == nil && recording.exchanges[0].response?.body == .text("1234"))
    }

    @Test func emptyRecordingIsAFile() throws {
        let har = try Recording().har()
        #expect(try Recording(har: har) == Recording())
    }

    @Test func fileIsForItsOwnerAlone() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "tern-\(UInt64.random(in: 0 ... .max)).har")
        defer { try? FileManager.default.removeItem(at: file) }
        try Recording().writeHAR(to: file)
        #expect(try Data(contentsOf: file) == Recording().har())
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions].map { "\($0)" } == "\(0o600)")
    }

    /// Headers, cookies and queries of any form give a file that can be read again.
    @Test func oddValuesAreWritten() throws {
        let exchange = Recording.Exchange(
            request: Recording.Sent(
                method: "GET", url: "https://h/?&a&=b&c=%zz&d=%C3%BC+1&e=\"\u{301}#f=g",
                headers: ["Cookie: a=1; b; =c; d=2=3", "no colon"]),
            response: Recording.Received(
                status: 200,
                headers: [
                    "Set-Cookie: ", "Set-Cookie: =x", "Set-Cookie: a",
                    "Set-Cookie: b=1;Secure;SameSite=Lax; "
                        + "expires=Sun, 06 Nov 1994 08:49:37 GMT; Domain=h; Max-Age=1",
                ]))
        let har = try Recording([exchange]).har(redaction: .none)
        let entry = try TernJSONDecoder().decode(JSONValue.self, from: har)["log"]?["entries"]?[0]
        let items = try #require(entry?["request"]?["queryString"]?.array)
        #expect(items.compactMap { $0["name"]?.string } == ["a", "", "c", "d", "e"])
        #expect(items.compactMap { $0["value"]?.string } == ["", "b", "%zz", "\u{FC} 1", "\"\u{301}"])
        #expect(
            entry?["request"]?["cookies"] == [["name": "a", "value": "1"], ["name": "d", "value": "2=3"]])
        #expect(
            entry?["response"]?["cookies"] == [
                [
                    "name": "b", "value": "1", "domain": "h", "expires": "1994-11-06T08:49:37.000Z", "httpOnly": false,
                    "secure": true, "sameSite": "Lax",
                ]
            ])
        #expect(try Recording(har: har, redaction: .none).exchanges.count == 1)
    }
}
