import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Plays HAR files in the shapes that browsers and proxies export.
@Suite(.timeLimit(.minutes(1)))
struct HARReadingTests {
    private static func client(_ har: String, repeatsLast: Bool = false) throws -> (Client, Recording) {
        let recording = try Recording(har: Data(har.utf8))
        let stub = StubTransport(replaying: recording, repeatsLast: repeatsLast)
        return (try Client(baseURL: "https://api.example.com", session: Session(stub: stub)), recording)
    }

    private static func failure<Value>(of operation: () async throws(NetworkError) -> Value) async -> NetworkError? {
        do {
            _ = try await operation()
            return nil
        } catch {
            return error
        }
    }

    /// A file with one entry, whose response has these members.
    private static func file(
        request: String = #""method": "GET", "url": "https://api.example.com/a""#, response: String
    ) -> String {
        #"{"log": {"entries": [{"request": {\#(request)}, "response": {\#(response)}}]}}"#
    }

    // MARK: Chrome

    /// HTTP/2 with pseudo-header fields, lengths of compressed bodies, fields with `_`, and null.
    private static let chrome = #"""
        {"log": {"version": "1.2", "creator": {"name": "WebInspector", "version": "537.36"},
        "pages": [{"startedDateTime": "2025-05-22T10:31:37.900Z", "id": "page_1", "title": "x", "pageTimings": {}}],
        "entries": [
        {"_connectionId": "9", "_initiator": {"type": "script", "stack": {"callFrames": []}}, "_priority": "High",
        "_resourceType": "fetch", "cache": {}, "connection": "443", "pageref": "page_1",
        "request": {"method": "GET", "url": "https://api.example.com/users/1?page=2&token=s3cret#top",
        "httpVersion": "h2", "headers": [{"name": ":authority", "value": "api.example.com"},
        {"name": ":method", "value": "GET"}, {"name": "accept", "value": "*/*"},
        {"name": "authorization", "value": "Bearer s3cret"}],
        "queryString": [{"name": "page", "value": "2"}], "cookies": [], "headersSize": -1, "bodySize": 0},
        "response": {"status": 200, "statusText": "", "httpVersion": "h2", "headers": [
        {"name": ":status", "value": "200"}, {"name": "content-encoding", "value": "br"},
        {"name": "content-length", "value": "25"}, {"name": "content-type", "value": "application/json"},
        {"name": "set-cookie", "value": "a=s3cret; path=/\nb=s3cret"}], "cookies": [],
        "content": {"size": 21, "mimeType": "application/json", "compression": -4,
        "text": "{\"id\":1,\"name\":\"Ada\"}"}, "redirectURL": "", "headersSize": -1, "bodySize": -1,
        "_transferSize": 324, "_error": null, "_fetchedViaServiceWorker": false},
        "serverIPAddress": "192.0.2.1", "startedDateTime": "2025-05-22T10:31:38.056Z", "time": 300.1,
        "timings": {"blocked": 2.1, "dns": 0.013, "ssl": 37.722, "connect": 38.067, "send": 0, "wait": 297,
        "receive": 0.756, "_blocked_queueing": 1.1, "_workerStart": -1}},
        {"request": {"method": "GET", "url": "https://api.example.com/logo", "httpVersion": "h2", "headers": [],
        "queryString": [], "cookies": [], "headersSize": -1, "bodySize": 0},
        "response": {"status": 200, "statusText": "", "httpVersion": "h2", "headers": [
        {"name": "content-type", "value": "image/png"}], "cookies": [], "content": {"size": 4,
        "mimeType": "image/png", "text": "iVBO/w==", "encoding": "base64"}, "redirectURL": "", "headersSize": -1,
        "bodySize": -1, "_transferSize": 0}, "startedDateTime": "2025-05-22T10:31:38.056Z", "time": 0, "timings": {}},
        {"request": {"method": "GET", "url": "https://api.example.com/ad", "httpVersion": "", "headers": []},
        "response": {"status": 0, "statusText": "", "httpVersion": "", "headers": [], "content": {"size": 0,
        "mimeType": "x-unknown"}, "redirectURL": "", "_error": "net::ERR_BLOCKED_BY_CLIENT"}},
        {"request": {"method": "GET", "url": "https://none.example/", "httpVersion": "", "headers": []},
        "response": {"status": 0, "_error": "net::ERR_NAME_NOT_RESOLVED"}},
        {"request": {"method": "GET", "url": "https://api.example.com/old", "httpVersion": "h2", "headers": []},
        "response": {"status": 302, "headers": [{"name": "location", "value": "/new"},
        {"name": "content-length", "value": "154"}], "content": {"size": 0, "mimeType": "x-unknown"},
        "redirectURL": "/new", "bodySize": 0}},
        {"request": {"method": "GET", "url": "https://api.example.com/new", "headers": []},
        "response": {"status": 200, "headers": [], "content": {"size": 3, "mimeType": "text/plain", "text": "new"}}},
        {"request": {"method": "GET", "url": "https://api.example.com/style", "headers": [
        {"name": "if-none-match", "value": "\"1\""}]}, "response": {"status": 304, "headers": [
        {"name": "etag", "value": "\"1\""}], "content": {"size": 4, "mimeType": "text/css", "text": "a {}"}}},
        {"request": {"method": "POST", "url": "https://api.example.com/files", "headers": [
        {"name": "content-type", "value": "multipart/form-data; boundary=----WebKitFormBoundaryA"}],
        "postData": {"mimeType": "multipart/form-data; boundary=----WebKitFormBoundaryA",
        "text": "------WebKitFormBoundaryA\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n\r\n------WebKitFormBoundaryA--\r\n"},
        "bodySize": 999}, "response": {"status": 201, "headers": [], "content": {"size": 4, "text": "kept"}}},
        {"request": {"method": "GET", "url": "wss://api.example.com/live", "headers": []}, "_resourceType":
        "websocket", "_webSocketMessages": [{"type": "send", "opcode": 1, "data": "hi"}],
        "response": {"status": 101, "headers": []}}
        ]}}
        """#

    @Test func exportOfChromePlays() async throws {
        let (client, recording) = try Self.client(Self.chrome)
        #expect(!"\(recording)".contains("s3cret"))
        let users = try await client.response(
            for: client.request(.get, "users/1", query: ["page": 2, "token": "other"]))
        #expect(String(decoding: users.value, as: UTF8.self) == #"{"id":1,"name":"Ada"}"#)
        #expect(users.headers["Content-Length"] == "21" && !users.headers.contains("Content-Encoding"))
        #expect(users.headers.values(for: "Set-Cookie") == ["a=<redacted>; path=/", "b=<redacted>"])
        #expect(users.head.version == .http2 && !users.headers.contains { $0.name.hasPrefix(":") })
        #expect(try await client.get("logo") == Data([0x89, 0x50, 0x4E, 0xFF]))
        let redirected = try await client.response(for: client.request(.get, "old"))
        #expect(redirected.value == Data("new".utf8) && redirected.head.redirects.map(\.status) == [302])
        var form = MultipartForm()
        form.append("image", named: "f")
        #expect(try await client.post("files", body: .multipart(form), as: String.self) == "kept")

        let blocked = try #require(await Self.failure { () throws(NetworkError) in try await client.get("ad") })
        #expect(blocked.kind == .connectionFailed && blocked.reason.contains("net::ERR_BLOCKED_BY_CLIENT"))
        let unknown = await Self.failure { () throws(NetworkError) in try await client.get("https://none.example/") }
        #expect(unknown?.kind == .dns)
        let socket = await Self.failure { () throws(NetworkError) in try await client.get("live") }
        #expect(socket?.kind == .unsupported)
    }

    @Test func timesOfChromeAreKept() throws {
        let details = try #require(try Self.client(Self.chrome).1.exchanges.first?.details)
        #expect(abs((details.started?.timeIntervalSince1970 ?? 0) - 1_747_909_898.056) < 0.000_1)
        #expect(details.total == .microseconds(300_100) && details.blocked == .microseconds(2_100))
        #expect(details.nameLookup == .microseconds(13) && details.tls == .microseconds(37_722))
        #expect(details.connect == .microseconds(345) && details.send == .zero && details.wait == .milliseconds(297))
        #expect(details.receive == .microseconds(756) && details.receivedBytes == 324)
        #expect(details.remoteAddress == "192.0.2.1" && details.httpVersion == .http2 && details.reasonPhrase == nil)
        #expect(details.encodedBodyBytes == nil)
    }

    @Test(arguments: [true, false])
    func answerFromTheCacheOfABrowserIsAWholeOne(isConditional: Bool) async throws {
        let (client, _) = try Self.client(Self.chrome)
        let headers: Headers = isConditional ? ["If-None-Match": "\"1\""] : [:]
        var request = try client.request(.get, "style", headers: headers)
        request.validation = .any
        let response = try await client.response(for: request)
        #expect(response.status == (isConditional ? 304 : 200))
        #expect(response.value == (isConditional ? Data() : Data("a {}".utf8)))
    }

    // MARK: Firefox, Safari, Charles, Proxyman

    @Test func exportOfFirefoxPlays() async throws {
        let (client, recording) = try Self.client(
            #"""
            {"log": {"version": "1.2", "creator": {"name": "Firefox", "version": "128.0"},
            "browser": {"name": "Firefox", "version": "128.0"}, "pages": [{"id": "page_1", "pageTimings":
            {"onContentLoad": -1, "onLoad": 1}, "startedDateTime": "2024-08-01T12:00:00.000+02:00", "title": "x"}],
            "entries": [
            {"startedDateTime": "2024-08-01T12:00:00.250+02:00", "request": {"bodySize": 9, "method": "POST",
            "url": "https://api.example.com/login", "httpVersion": "HTTP/2", "headers": [{"name": "Content-Type",
            "value": "application/x-www-form-urlencoded"}], "cookies": [{"name": "sid", "value": "1"}],
            "queryString": [], "headersSize": 400, "postData": {"mimeType": "application/x-www-form-urlencoded",
            "params": [{"name": "a", "value": "b c"}, {"name": "d", "value": "e"}], "text": "a=b+c&d=e"}},
            "response": {"status": 200, "statusText": "OK", "httpVersion": "HTTP/2", "headers": [{"name":
            "content-encoding", "value": "gzip"}, {"name": "Content-Type", "value": "text/html; charset=iso-8859-1"}],
            "cookies": [], "content": {"mimeType": "text/html; charset=iso-8859-1", "size": 5, "text": "Zoë!"},
            "redirectURL": "", "headersSize": 300, "bodySize": 1234}, "cache": {}, "timings": {"blocked": 0,
            "dns": 0, "connect": 0, "ssl": 0, "send": 0, "wait": 12, "receive": 0}, "time": 12,
            "_securityState": "secure", "serverIPAddress": "2001:db8::1", "connection": "443", "pageref": "page_1"},
            {"request": {"bodySize": 0, "method": "GET", "url": "https://api.example.com/big", "headers": []},
            "response": {"status": 200, "statusText": "OK", "headers": [], "content": {"mimeType": "video/mp4",
            "size": 73000, "comment": "Response bodies are not included."}, "bodySize": 73000}, "time": -1}
            ]}}
            """#)
        let page = try await client.post("login", body: .form(["a": "b c", "d": "e"]), as: String.self)
        #expect(page == "Zoë!")
        let details = try #require(recording.exchanges.first?.details)
        #expect(details.started == Date(timeIntervalSince1970: 1_722_506_400.25) && details.encodedBodyBytes == 1_234)
        #expect(details.reasonPhrase == "OK" && details.httpVersion == .http2 && details.wait == .milliseconds(12))
        let error = try #require(await Self.failure { () throws(NetworkError) in try await client.get("big") })
        #expect(error.kind == .truncatedBody && error.reason.contains("0 of 73000 bytes"))
        #expect(recording.exchanges.last?.details?.total == nil)
    }

    @Test func exportOfSafariPlays() async throws {
        let (client, _) = try Self.client(
            #"""
            {"log": {"version": "1.2", "creator": {"name": "WebKit Web Inspector", "version": "1.0"}, "pages": [],
            "entries": [{"pageref": "page_0", "startedDateTime": "2023-01-01T00:00:00.000Z", "time": 44.20019,
            "request": {"method": "PUT", "url": "https://api.example.com/users/1", "httpVersion": "HTTP/1.1",
            "cookies": [], "headers": [{"name": "Content-Type", "value": "application/json"}], "queryString": [],
            "headersSize": 300, "bodySize": 7, "postData": {"mimeType": "application/json", "text": "{\"a\":1}"}},
            "response": {"status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "cookies": [], "headers": [
            {"name": "Transfer-Encoding", "value": "Identity"}, {"name": "Content-Type", "value": "text/plain"}],
            "content": {"size": 2, "compression": 0, "mimeType": "text/plain", "text": "ok"}, "redirectURL": "",
            "headersSize": 100, "bodySize": 2, "_transferSize": 102}, "cache": {}, "timings": {"blocked": -1,
            "dns": -1, "connect": -1, "ssl": -1, "send": 1.5, "wait": 42.7, "receive": 0}, "_fetchType": "Network Load",
            "_priority": "high"}]}}
            """#)
        #expect(try await client.put("users/1", body: .text(#"{"a":1}"#), as: String.self) == "ok")
    }

    /// A byte order mark, times without a fraction, few fields, and a transfer that failed.
    @Test func exportOfCharlesPlays() async throws {
        let (client, _) = try Self.client(
            "\u{FEFF}"
                + #"""
                {"log": {"version": "1.2", "creator": {"name": "Charles Proxy", "version": "4.6.4"}, "entries": [
                {"startedDateTime": "2023-01-01T00:00:00+01:00", "time": 90, "request": {"method": "GET",
                "url": "https://api.example.com:443/list?q=a|b", "httpVersion": "HTTP/1.1", "headers": [], "headersSize":
                200, "bodySize": 0}, "response": {"_charlesStatus": "COMPLETE", "status": 200, "statusText": "OK",
                "headers": [{"name": "Content-Encoding", "value": "gzip"}, {"name": "Transfer-Encoding",
                "value": "chunked"}, {"name": "Content-Type", "value": "application/octet-stream"}, {"name": "X-N",
                "value": 7}, {"name": "X-None"}, null], "content": {"size": 3, "compression": 4, "mimeType": null,
                "text": "AP\r\n/+", "encoding": "base64"}, "headersSize": 100, "bodySize": 7}, "cache": {},
                "timings": {"dns": 1, "connect": 2, "send": 3, "wait": 4, "receive": 5}},
                {"time": 0, "request": {"method": "GET", "url": "https://api.example.com/lost", "headers": null,
                "cookies": null}, "response": {"_charlesStatus": "FAILED", "status": 0, "headers": null}},
                {"request": {"method": "GET", "url": "https://api.example.com/gone"}, "response": null}]}}
                """#)
        let response = try await client.response(for: client.request(.get, "list?q=a%7Cb"))
        #expect(response.value == Data([0, 255, 254]))
        #expect(response.headers.map(\.name) == ["Content-Type", "X-N", "X-None"])
        #expect(response.headers["X-N"] == "7" && response.headers["X-None"]?.isEmpty == true)
        for path in ["lost", "gone"] {
            let error = await Self.failure { () throws(NetworkError) in try await client.get(path) }
            #expect(error?.kind == .connectionFailed)
        }
    }

    /// Bodies of requests in the forms of different programs.
    @Test(arguments: [
        (#""text": "a=1&b=x+y""#, true), (#""text": "a=1&b=x+z""#, false), (#""text": "\uFFFDa""#, true),
        (#""params": [{"name": "a", "value": "1"}, {"name": "b", "value": "x y"}]"#, true),
        (#""encoding": "base64", "text": "YT0xJmI9eCt5""#, true), (#""encoding": "base64", "text": "YT0x""#, false),
        (#""text": """#, true),
    ])
    func bodyOfARequestIsCompared(postData: String, isEqual: Bool) async throws {
        let (client, _) = try Self.client(
            Self.file(
                request: #"""
                    "method": "POST", "url": "https://api.example.com/a", "bodySize": 9, "headers": [],
                    "postData": {"mimeType": "application/x-www-form-urlencoded", \#(postData)}
                    """#, response: #""status": 204"#))
        let error = await Self.failure { () throws(NetworkError) in
            try await client.post("a", body: .form(["a": "1", "b": "x y"]))
        }
        #expect((error == nil) == isEqual, "\(String(describing: error))")
    }

    /// A request whose body the program has not kept answers any body, after those whose body is known.
    @Test(arguments: [
        (#", "bodySize": 3"#, true), ("", true), (#", "bodySize": -1"#, true), (#", "bodySize": 0"#, false),
    ])
    func requestWithoutItsBodyMatchesEachBody(size: String, isEqual: Bool) async throws {
        let (client, _) = try Self.client(
            #"""
            {"log": {"entries": [
            {"request": {"method": "PUT", "url": "https://api.example.com/a"\#(size)}, "response": {"status": 202}},
            {"request": {"method": "PUT", "url": "https://api.example.com/a", "postData": {"text": "abc"}},
            "response": {"status": 201}}]}}
            """#)
        let exact = try await client.response(for: client.request(.put, "a", body: .text("abc")))
        #expect(exact.status == 201)
        let error = await Self.failure { () throws(NetworkError) in
            try await client.response(for: client.request(.put, "a", body: .text("xyz")))
        }
        #expect((error == nil) == isEqual)
    }

    /// The types of the bodies stand in for header fields that the program has not kept.
    @Test func typesOfBodiesAreThoseOfAFileWithoutHeaders() async throws {
        let (client, recording) = try Self.client(
            Self.file(
                request: #"""
                    "method": "POST", "url": "https://api.example.com/a", "postData":
                    {"mimeType": "application/x-www-form-urlencoded", "text": "password=s3cret&a=1"}
                    """#,
                response: #"""
                    "status": 200, "content": {"text": "{\"a\": 1}", "mimeType": "application/json"}
                    """#))
        #expect(!"\(recording)".contains("s3cret"))
        let response = try await client.response(
            for: client.request(.post, "a", body: .form(["password": "other", "a": "1"] as Request.Query)))
        #expect(response.headers["Content-Type"] == "application/json")
        #expect(response.value == Data(#"{"a": 1}"#.utf8))
    }

    @Test func entriesOfOneURLPlayInOrder() async throws {
        let entries = (1...3).map { number in
            #"""
            {"request": {"method": "GET", "url": "https://api.example.com"}, "response": {"status": 200, "content":
            {"text": "\#(number)"}}}
            """#
        }
        let (client, _) = try Self.client(#"{"log": {"entries": [\#(entries.joined(separator: ","))]}}"#)
        var seen: [String] = []
        for _ in 0..<3 { seen.append(try await client.get("/", as: String.self)) }
        #expect(seen == ["1", "2", "3"])
        #expect(await Self.failure { () throws(NetworkError) in try await client.get("/") }?.kind == .unsupported)
    }

    // MARK: Lengths

    struct Length: Sendable {
        let method: String
        let response: String
        /// The `Content-Length` and the body; nil for a body that is not there.
        let length: String?
        let body: String?
    }

    @Test(arguments: [
        Length(method: "GET", response: #""content": {"size": 5, "text": "12345"}"#, length: nil, body: "12345"),
        Length(
            method: "GET", response: #""content": {"text": "123"}, "headers": [\#(field("Content-Length", "77"))]"#,
            length: "3", body: "123"),
        Length(
            method: "GET",
            response: #"""
                "content": {"text": "123"},
                "headers": [\#(field("content-length", "2")), \#(field("CONTENT-ENCODING", "gzip"))]
                """#, length: "3", body: "123"),
        Length(
            method: "HEAD", response: #""content": {"size": 0}, "headers": [\#(field("Content-Length", "77"))]"#,
            length: "77", body: ""),
        Length(
            method: "GET", response: #""content": {"size": 0}, "headers": [\#(field("Content-Length", "77"))]"#,
            length: "77", body: nil),
        Length(method: "GET", response: #""content": {"size": 9}"#, length: nil, body: nil),
        Length(
            method: "GET",
            response: #""headers": [\#(field("Content-Length", "77")), \#(field("Content-Encoding", "br"))]"#,
            length: nil, body: nil),
        Length(method: "GET", response: #""content": {"size": 0, "text": ""}"#, length: nil, body: ""),
        Length(method: "GET", response: #""headers": [\#(field("Content-Length", "0"))]"#, length: "0", body: ""),
        Length(method: "GET", response: #""headers": [\#(field("Content-Length", "-3"))]"#, length: "0", body: ""),
    ])
    func lengthIsThatOfTheBodyHere(_ row: Length) async throws {
        let (client, recording) = try Self.client(
            Self.file(
                request: #""method": "\#(row.method)", "url": "https://api.example.com/a""#,
                response: #""status": 200, \#(row.response)"#))
        let response = try #require(recording.exchanges.first?.response)
        let name = "content-length: "
        #expect(
            response.headers.first { $0.lowercased().hasPrefix(name) }.map { String($0.dropFirst(name.count)) }
                == row.length)
        let request = try client.request(Request.Method(row.method), "a")
        do {
            let answer = try await client.response(for: request)
            #expect(String(decoding: answer.value, as: UTF8.self) == row.body)
        } catch {
            #expect(error.kind == .truncatedBody && row.body == nil)
        }
    }

    private static func field(_ name: String, _ value: String) -> String {
        #"{"name": "\#(name)", "value": "\#(value)"}"#
    }

    // MARK: Hostile files

    @Test(arguments: [
        ("", "not valid JSON"), ("[]", "found an array"), (#"{"log": {}}"#, "entries"),
        (#"{"log": {"entries": [{"request"#, "not valid JSON"), (#"{"log": {"entries": [1]}}"#, "entry 1: "),
        (#"{"log": {"entries": [{}]}}"#, "entry 1: the object has no key \"request\""),
        (
            #"{"log": {"entries": [{"request": {"method": "A", "url": "http://h"}}, {"request": {"method": "A"}}]}}"#,
            "entry 2: request: the object has no key \"url\""
        ),
        (#"{"log": {"entries": [{"request": {"method": 1, "url": "http://h"}}]}}"#, "entry 1: request.method: "),
        (#"{"log": {"entries": [{"request": {"method": "", "url": "h"}}]}}"#, "entry 1: request.method is empty"),
        (#"{"log": {"entries": [{"request": {"method": "A", "url": "h", "headers": 7}}]}}"#, "request.headers"),
        (file(response: #""status": "200""#), "entry 1: response.status: "),
        (file(response: #""status": 1000"#), "entry 1: response.status is 1000"),
        (file(response: #""status": 1e30"#), "entry 1: response.status: "),
        (file(response: #""status": 200, "content": []"#), "entry 1: response.content: "),
        (file(response: #""status": 200, "content": {"text": 5}"#), "entry 1: response.content.text: "),
        (
            file(response: #""status": 200, "content": {"text": "no!", "encoding": "base64"}"#),
            "entry 1: response.content.text is not Base64"
        ),
    ])
    func errorNamesTheEntryAndTheValue(har: String, text: String) {
        let error = #expect(throws: DecodingError.self) { try Recording(har: Data(har.utf8)) }
        let shown = String(describing: error).replacing("\\\"", with: "\"")
        #expect(shown.contains(text), "\(shown)")
    }

    @Test func valuesOfOtherKindsAreLeftOut() throws {
        let har = #"""
            {"log": {"version": 1, "creator": "x", "entries": [{"startedDateTime": 7, "time": "1", "serverIPAddress": [],
            "timings": [], "request": {"method": "GET", "url": "http://h/", "httpVersion": {}, "bodySize": "x",
            "cookies": 9, "queryString": {}, "postData": null},
            "response": {"status": 200, "statusText": 200, "httpVersion": null, "bodySize": 1.5, "content":
            {"size": -7, "mimeType": [], "text": null, "encoding": 0}, "headers": [7, {"name": 7},
            {"name": "a b", "value": "x"}, {"name": "X\r\nY", "value": "x"}, {"name": "X", "value": "a\r\nb\u0000c"}]}},
            {"startedDateTime": "yesterday", "time": 1e300, "timings": {"blocked": -0.1, "wait": 1e300, "dns": "x"},
            "request": {"method": "GET", "url": "http://h/"}, "response": {"status": -1}}]}}
            """#
        let exchanges = try Recording(har: Data(har.utf8)).exchanges
        #expect(exchanges.map(\.details) == [nil, nil])
        #expect(exchanges[0].response == Recording.Received(status: 200, headers: ["X: a, b c"]))
        #expect(exchanges[1].response == nil && exchanges[1].failure?.kind == "connection-failed")
    }

    @Test func fileOfEachKindIsRead() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "tern-\(UInt64.random(in: 0 ... .max)).har")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(("\u{FEFF}" + Self.chrome).utf8).write(to: file)
        let recording = try Recording(contentsOf: file)
        #expect(recording == (try Recording(har: Data(Self.chrome.utf8))))
        try recording.write(to: file)
        var plain = recording
        for index in plain.exchanges.indices { plain.exchanges[index].details = nil }
        #expect(try Recording(contentsOf: file) == plain)
    }
}
