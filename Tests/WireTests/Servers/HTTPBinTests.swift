#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Calls a server of another author, which is started once for all checks.
@Suite("httpbin", .serialized, .enabled(if: Venv.isExpected, Venv.absence), .timeLimit(.minutes(2)))
struct HTTPBinTests {
    private struct Echo: Decodable, Sendable {
        var args: [String: JSONValue]
        var headers: [String: String]
        var url: String
        var data: String?
        var form: [String: JSONValue]?
        var files: [String: String]?
    }

    private struct Login: Decodable, Sendable {
        var authenticated: Bool
        var user: String?
        var token: String?
    }

    @Test func commonClientTestsPass() async throws {
        try await inTestFolder { folder in
            let server = try await HTTPBin(in: folder)
            let client = try Client(baseURL: server.url, session: Session(configuration: .test()))
            try await requests(client)
            try await compression(client)
            try await redirects(client)
            try await cookies(server)
            try await authentication(server)
            try await statuses(server)
            try await transfers(client, folder)
            try await times(client)
        }
    }

    private func requests(_ client: Client) async throws {
        let query: Request.Query = ["a b": "ä&=+", "flag": .null, "x": 1]
        let got = try await client.get("get", query: query, headers: ["X-One": "1"], as: Echo.self)
        #expect(got.args["a b"] == .string("ä&=+") && got.args["x"] == .string("1"))
        #expect(got.headers["X-One"] == "1" && got.headers["User-Agent"]?.contains("Tern/") == true)
        let json = try await client.post("post", body: .json(["name": "Ada"]), as: Echo.self)
        #expect(json.data == #"{"name":"Ada"}"# && json.headers["Content-Type"] == "application/json")
        var encoder = FormEncoder()
        encoder.spaces = .plus
        let form = try await client.put("put", body: .form(["k": "a b+c"], encoder: encoder), as: Echo.self)
        #expect(form.form?["k"] == .string("a b+c"))
        var parts = MultipartForm()
        parts.append("Ada", named: "name")
        parts.append(Data("content".utf8), named: "file", filename: "f.txt")
        let upload = try await client.upload("post", multipart: parts, as: Echo.self).value
        #expect(upload.form?["name"] == .string("Ada") && upload.files?["file"] == "content")
        let patched = try await client.patch("patch", body: .text("x"), as: Echo.self)
        #expect(patched.data == "x")
        let deleted = try await client.delete("delete", as: Echo.self)
        #expect(deleted.url.hasSuffix("/delete"))
        let head = try await client.head("get")
        #expect(head.status == 200)
        let text = try await client.get("encoding/utf8", as: String.self)
        #expect(text.contains("∮ E⋅da = Q"))
        for kind in ["png", "jpeg", "webp", "svg"] {
            let image = try await client.get("image/\(kind)")
            #expect(image.count > 1_000)
        }
    }

    private func compression(_ client: Client) async throws {
        for (path, key) in [("gzip", "gzipped"), ("deflate", "deflated"), ("brotli", "brotli")] {
            let value = try await client.get(path, as: JSONValue.self)
            guard case .object(let members) = value else {
                Issue.record("\(path): no object")
                continue
            }
            #expect(members[key] == .bool(true))
        }
    }

    private func redirects(_ client: Client) async throws {
        for path in ["redirect/5", "relative-redirect/5", "absolute-redirect/5"] {
            let response = try await client.response(for: client.request(.get, path))
            #expect(response.head.redirects.count == 5 && response.head.urlString.hasSuffix("/get"))
        }
        let tooMany = try await failure { try await client.get("redirect/25") }
        #expect(tooMany.kind == .tooManyRedirects)
        let query: Request.Query = ["url": "/anything", "status_code": 307]
        let kept = try await client.post("redirect-to", query: query, body: .text("again"), as: Echo.self)
        #expect(kept.data == "again")
        let changed = try await client.post(
            "redirect-to", query: ["url": "/get", "status_code": 303], body: .text("gone"), as: Echo.self)
        #expect(changed.url.hasSuffix("/get"))
    }

    private func cookies(_ server: HTTPBin) async throws {
        struct Jar: Decodable, Sendable { var cookies: [String: String] }
        let client = try Client(baseURL: server.url, session: Session(configuration: .test()))
        let set = try await client.get("cookies/set", query: ["a": "1", "b": "2"], as: Jar.self)
        #expect(set.cookies == ["a": "1", "b": "2"])
        let removed = try await client.get("cookies/delete", query: ["a": .null], as: Jar.self)
        #expect(removed.cookies == ["b": "2"])
        let other = try Client(baseURL: server.url, session: Session(configuration: .test()))
        let none = try await other.get("cookies", as: Jar.self)
        #expect(none.cookies.isEmpty)
    }

    private func authentication(_ server: HTTPBin) async throws {
        let paths = [
            "basic-auth/ada/secret", "hidden-basic-auth/ada/secret", "digest-auth/auth/ada/secret/MD5",
            "digest-auth/auth/ada/secret/SHA-256", "digest-auth/auth-int/ada/secret/SHA-256",
        ]
        for path in paths {
            // The hidden route sends no challenge: its credential is sent with the first request.
            let credentials = try FixedCredentials(
                [server.url: .user("ada", password: "secret")], isPreemptive: path.hasPrefix("hidden"))
            let configuration = Session.Configuration.test { $0.credentials = credentials }
            let client = try Client(baseURL: server.url, session: Session(configuration: configuration))
            let login = try await client.get(path, as: Login.self)
            #expect(login.authenticated && login.user == "ada")
            let again = try await client.get(path, as: Login.self)
            #expect(again.authenticated)
        }
        let wrong = Session.Configuration.test {
            $0.credentials = try? FixedCredentials([server.url: .user("ada", password: "wrong")])
        }
        let client = try Client(baseURL: server.url, session: Session(configuration: wrong))
        #expect(try await failure { try await client.get("basic-auth/ada/secret") }.status == 401)
        #expect(try await failure { try await client.get("digest-auth/auth/ada/secret/MD5") }.status == 401)
        let bearer = try await client.get("bearer", headers: ["Authorization": "Bearer t"], as: Login.self)
        #expect(bearer.token == "t")
    }

    private func statuses(_ server: HTTPBin) async throws {
        let configuration = Session.Configuration.test {
            var policy = RetryPolicy()
            policy.limit = 2
            policy.firstDelay = .milliseconds(1)
            $0.interceptors = [RetryInterceptor(policy)]
        }
        let client = try Client(baseURL: server.url, session: Session(configuration: configuration))
        for status in [400, 404, 418, 500, 503] {
            let error = try await failure { try await client.get("status/\(status)") }
            #expect(error.kind == .status && error.status == status)
        }
        let empty: String? = try await client.get("status/204")
        #expect(empty == nil)
    }

    private func transfers(_ client: Client, _ folder: TestFolder) async throws {
        let lines = client.stream("stream/20").lines
        var count = 0
        for try await _ in lines { count += 1 }
        #expect(count == 20)
        let bytes = try await client.get("stream-bytes/50000", query: ["chunk_size": 1_000])
        #expect(bytes.count == 50_000)
        let whole = try await client.get("range/1000")
        let part = try await client.get("range/1000", headers: ["Range": "bytes=100-199"])
        #expect(part == whole[100..<200])
        let file = try await client.download("range/100000", to: folder.url("range")).value
        #expect(try Data(contentsOf: file).count == 100_000)
    }

    private func times(_ client: Client) async throws {
        var request = try client.request(.get, "delay/5")
        request.timeouts = Timeouts(total: .milliseconds(300))
        let late = try await failure { [request] in try await client.response(for: request) }
        #expect(late.kind == .totalTimedOut)
        request = try client.request(.get, "drip", query: ["duration": 3, "numbytes": 3, "delay": 0])
        request.timeouts = Timeouts(idle: .milliseconds(300))
        let slow = try await failure { [request] in try await client.response(for: request) }
        #expect(slow.kind == .idleTimedOut)
        let drip = try await client.get("drip", query: ["duration": 1, "numbytes": 5, "delay": 0])
        #expect(drip.count == 5)
    }
}

/// Reads forms with parsers of other authors.
@Suite("Multipart: other parsers", .enabled(if: Venv.isExpected, Venv.absence), .timeLimit(.minutes(1)))
struct MultipartParserTests {
    private struct Part: Decodable, Hashable {
        var name: String
        var filename: String?
        var type: String?
        var size: Int
    }

    /// Prints the parts that `multipart` and werkzeug find in a file, one after the other.
    private static let script = """
        import io, json, sys
        body, kind = open(sys.argv[1], 'rb').read(), sys.argv[2]
        import multipart
        options = multipart.parse_options_header(kind)[1]
        found = [{'name': p.name, 'filename': p.filename, 'type': p.content_type if p.filename else None,
                  'size': p.size}
                 for p in multipart.MultipartParser(io.BytesIO(body), options['boundary'], content_length=len(body),
                                                    strict=True)]
        from werkzeug.formparser import FormDataParser
        _, form, files = FormDataParser().parse(io.BytesIO(body), kind.split(';')[0], len(body), options)
        other = [{'name': k, 'size': len(v.encode())} for k, v in form.items(multi=True)]
        other += [{'name': k, 'filename': f.filename, 'type': f.mimetype, 'size': len(f.read())}
                  for k, f in files.items(multi=True)]
        print(json.dumps([found, other]))
        """

    @Test func otherParsersFindTheSentParts() async throws {
        try await inTestFolder { folder in
            try folder.write([UInt8](repeating: 13, count: 100_000), to: "large.bin")
            var form = try MultipartForm(encoding: ["b": "2", "a": "1"])
            form.append("ä\r\nö", named: "plain")
            form.append(Data("x".utf8), named: "we\"ird\r\nname", filename: "q\"uote\n.txt")
            form.append(Data([0, 13, 10, 45, 45]), named: "bytes", filename: "日本.bin")
            form.append(Data(), named: "empty", filename: "empty.png")
            form.append(UploadTests.Pieces(), length: Int64(UploadTests.pattern.count), named: "s", filename: "s.json")
            try form.append(file: folder.url("large.bin"), named: "large")
            try await withServer { exchange in
                let body = try exchange.readBody()
                try folder.write(body, to: "body")
                try exchange.respond(text: exchange.request["Content-Type"] ?? "")
            } test: { _, client in
                let type = try await client.post("a", body: .multipart(form), as: String.self)
                try folder.write(Self.script, to: "judge.py")
                let (python, path) = (Venv.program("python"), folder.path)
                try Child.run(
                    "\(python) '\(path)/judge.py' '\(path)/body' '\(type)'", output: "\(path)/judged")
                let judged = try JSONDecoder().decode([[Part]].self, from: folder.bytes("judged"))
                let expected: Set<Part> = [
                    Part(name: "a", size: 1), Part(name: "b", size: 1), Part(name: "plain", size: 6),
                    Part(name: "bytes", filename: "日本.bin", type: "application/octet-stream", size: 5),
                    Part(name: "empty", filename: "empty.png", type: "image/png", size: 0),
                    Part(name: "s", filename: "s.json", type: "application/json", size: UploadTests.pattern.count),
                    Part(name: "large", filename: "large.bin", type: "application/octet-stream", size: 100_000),
                ]
                // The first parser decodes %22, %0D and %0A as the WHATWG defines, the second the quotation mark only.
                let odd = [
                    Part(name: "we\"ird\r\nname", filename: "q\"uote\n.txt", type: "text/plain", size: 1),
                    Part(name: "we\"ird%0D%0Aname", filename: "q\"uote%0A.txt", type: "text/plain", size: 1),
                ]
                #expect(judged.count == 2)
                for (found, odd) in zip(judged, odd) {
                    #expect(Set(found) == expected.union([odd]))
                    #expect(found.count == expected.count + 1)
                }
            }
        }
    }
}
#endif
