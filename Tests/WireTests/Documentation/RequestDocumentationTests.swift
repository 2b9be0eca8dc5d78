#if !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Runs the examples of Documentation/Uploading.md, Errors.md, Reachability.md, Testing.md and Trust.md, word for word.
@Suite(.timeLimit(.minutes(1)))
struct RequestDocumentationTests {
    private struct User: Codable, Sendable {
        var id: Int
        var name: String
    }

    private struct Problem: Decodable, Sendable { var title: String }

    private struct Draft: Encodable, Sendable { var title: String, tags: [String] }

    private static func serve(_ exchange: LoopbackServer.Exchange) throws {
        switch (exchange.request.method, exchange.request.path) {
        case ("GET", "/users/1"): try exchange.respond(json: User(id: 1, name: "Ada"))
        case ("GET", "/users/2"): try exchange.respond(status: 409, json: ["title": "taken"])
        case ("GET", "/drafts"): try exchange.respond(json: [exchange.request.target])
        default:
            let count = try exchange.readBody().count
            try exchange.respond(json: [exchange.request["Content-Type"] ?? "none", "\(count)"])
        }
    }

    @Test func uploadingExamplesRun() async throws {
        try await inTestFolder { folder in
            try folder.write([UInt8](repeating: 1, count: 5_000), to: "photo.jpg")
            try await withServer(Self.serve) { _, client in
                let (photo, bytes) = (folder.url("photo.jpg"), Data([1, 2]))
                let chunks = AsyncStream<Data> { continuation in
                    continuation.yield(Data(count: 1_000))
                    continuation.finish()
                }
                let draft = Draft(title: "a b", tags: ["x", "y"])

                let json = Request.Body.json(draft)
                let form = Request.Body.form(draft)
                let list = Request.Body.propertyList(draft)
                let text = Request.Body.text("hello")
                let data = Request.Body.data(bytes, contentType: "image/png")
                let file = Request.Body.file(photo, contentType: "image/jpeg")
                let types = [
                    "application/json", "application/x-www-form-urlencoded", "application/x-plist",
                    "text/plain; charset=utf-8", "image/png", "image/jpeg",
                ]
                for (body, type) in zip([json, form, list, text, data, file], types) {
                    let answer = try await client.post("drafts", body: body, as: [String].self)
                    #expect(answer[0] == type)
                }

                var encoder = FormEncoder()
                encoder.arrays = .bare
                encoder.keys = .snakeCase
                let query = try Request.Query(encoding: draft, with: encoder)
                let found = try await client.get("drafts", query: query, as: [String].self)
                #expect(found == ["/drafts?tags=x&tags=y&title=a%20b"])

                var parts = try MultipartForm(encoding: ["album": "summer"])
                parts.append("Ada", named: "author")
                try parts.append(file: photo, named: "photo")
                parts.append(chunks, length: 1_000, named: "log", filename: "log.txt")
                let task = client.upload("photos", multipart: parts)
                var fraction: Double?
                for await progress in task.uploadProgress { fraction = progress.fractionCompleted }
                #expect(fraction == 1)
                #expect(try await task.value.count > 50)

                try await client.post("log", body: .json(draft).compressed())
                try await client.post("photos", body: .file(photo).throttled(.bytesPerSecond(200_000)))
                try await client.post("photos", body: .file(photo).throttled(.packets()))
            }
        }
    }

    @Test func errorExamplesRun() async throws {
        try await withServer(Self.serve) { _, client in
            var said = ""
            do throws(NetworkError) {
                let user: User = try await client.get("users/2")
                print(user)
            } catch {
                switch error.kind {
                case .status where error.status == 404: said = "nobody there"
                case .status: said = try error.decode(as: Problem.self).title
                case .cancelled: break
                case _ where error.timeoutPhase != nil: print("too slow:", error)
                default: print(error)
                }
            }
            #expect(said == "taken")
        }
    }

    @Test func reachabilityExamplesRun() async throws {
        try await withServer(Self.serve) { _, client in
            var configuration = Session.Configuration.test()
            configuration.interceptors = [OfflineWaitInterceptor(upTo: .seconds(30)), RetryInterceptor()]
            configuration.reachability = Reachability()
            configuration.interceptors = [CoalescingInterceptor()]
            configuration.proxies = .only(
                Proxy(.socks5, host: "proxy.example.com", port: 1080), except: ["internal.example"])
            configuration.hostAddresses = ["api.example.com": ["192.0.2.7"]]
            configuration.localEndpoint = .interface("eth0")
            configuration.queueOrder = .lastInFirstOut
            try configuration.check()

            var statuses = Reachability.shared.statuses.makeAsyncIterator()
            #expect(await statuses.next() != nil)
            let activity = NetworkActivity()
            await activity.follow(client.session.tasks)
            await activity.setEnabled(true)
            var visibility = activity.visibility.makeAsyncIterator()
            #expect(await visibility.next() == false)
        }
    }

    @Test func testingExamplesRun() async throws {
        let stub = StubTransport([
            "GET /users/1": .text(#"{"id":1,"name":"Ada"}"#, contentType: "application/json"),
            "DELETE /users/1": .status(204),
        ])
        let client = try Client(baseURL: "https://api.example.com", session: Session(stub: stub))
        let user: User = try await client.get("users/1")
        #expect(user.name == "Ada" && stub.calls.map(\.path) == ["/users/1"])

        let clock = ManualClock()
        let flaky = StubTransport(clock: clock) { call in
            if call.index == 0 { throw StubTransport.Failure(.connectionLost) }
            return .chunks([Data("one".utf8), Data("two".utf8)], interval: .seconds(1))
        }
        let other = try Client(baseURL: "https://api.example.com", session: Session(stub: flaky))
        #expect(try await failure { try await other.get("a") }.kind == .connectionLost)

        try await inTestFolder { folder in
            let file = folder.url("recording.json")
            try await withServer(Self.serve) { server, _ in
                let recorder = Recorder(.test())
                let live = Client(baseURL: server.url, session: Session(recorder: recorder))
                _ = try await live.get("users/1", as: User.self)
                try recorder.recording.write(to: file)

                let replay = StubTransport(replaying: try Recording(contentsOf: file))
                let played = Client(baseURL: server.url, session: Session(stub: replay))
                let same = try await played.get("users/1", as: User.self)
                #expect(same.name == "Ada" && server.counts.requestsReceived == 1)

                try recorder.recording.writeHAR(to: file, bodyLimit: 1 << 20)
                let exportOfABrowser = file
                let export = try Recording(har: Data(contentsOf: exportOfABrowser))
                let stub = StubTransport(replaying: export)
                let again = Client(baseURL: server.url, session: Session(stub: stub))
                #expect(try await again.get("users/1", as: User.self).name == "Ada")
            }
        }

        let server = try LoopbackServer { exchange in
            try exchange.respond(json: ["path": exchange.request.path])
        }
        let answer = try await Client(baseURL: server.url).get("a", as: [String: String].self)
        #expect(answer == ["path": "/a"])
    }

    #if os(Linux)
    @Test func trustExamplesRun() throws {
        let ourAuthorities: [Certificate] = []
        var configuration = Session.Configuration()
        configuration.trust.hosts["api.example.com"] = TrustPolicy(pins: [
            try Pin(key: "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
            try Pin(key: "sha256/x4QzPSC810K5/cMjb05Qm4k3Bw5zBn4lTdO/nEW/Td4="),
        ])
        configuration.trust.hosts["*.internal.example"] = TrustPolicy(anchors: .standardAnd(ourAuthorities))
        try configuration.check()
        let session = Session(configuration: configuration)
        #expect(session.id.number > 0)
        var policy = TrustPolicy()
        policy.identity = .pkcs12(Data(), password: "")
        configuration.trust.hosts["mtls.example.com"] = policy
        try configuration.check()
        defer { try? FileManager.default.removeItem(atPath: "/tmp/keys.log") }  // A leftover does no harm.
        configuration.keyLog = try TLSKeyLog(file: URL(filePath: "/tmp/keys.log"))
        try configuration.check()
    }
    #endif
}
#endif
