#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import Testing

/// Calls a server over HTTP/3 that does wrong what its paths say. `HTTP3HostileTests`, `HTTP3NetworkTests` and
/// `HTTP3ResponseTests` of the engine have what can be seen without a socket.
@Suite(
    "Wire: faults over HTTP/3", .serialized, .timeLimit(.minutes(1)),
    .enabled(if: AioQUICPeer.isExpected, "aioquic or a library of HTTP/3 is missing; `make test` installs them"))
struct HTTP3FaultTests {
    /// A path, what a GET of it leads to, and how often the server gets it.
    struct Case: CustomStringConvertible {
        enum End: Equatable {
            case body(Int)
            case failure(NetworkError.Kind)
        }

        let path: String
        let end: End
        var gets = 1
        /// The number of times that a POST with the same path is sent.
        var posts = 1
        var postEnd: End?

        var description: String { path }
    }

    private static let cases = [
        Case(path: "/hello", end: .body(5)),
        Case(path: "/body/300000", end: .body(300_000)),
        Case(path: "/trailers", end: .body(5)),
        Case(path: "/interim", end: .body(5)),
        // Not processed: sent again.
        Case(path: "/reject/1", end: .body(5), gets: 2, posts: 2),
        Case(path: "/goaway", end: .body(5), gets: 2, posts: 2),
        // Processed, or perhaps: the method decides.
        Case(path: "/lost", end: .body(5), gets: 2, posts: 1, postEnd: .failure(.connectionLost)),
        // A part of a response is no response.
        Case(path: "/cut/2000/102", end: .failure(.connectionLost)),
        Case(path: "/cut/2000/100", end: .failure(.connectionLost)),
        Case(path: "/cut/2000/10B", end: .failure(.connectionLost)),
        Case(path: "/close/2000/100", end: .failure(.connectionLost)),
        Case(path: "/close/2000/102", end: .failure(.connectionLost)),
        Case(path: "/short", end: .failure(.truncatedBody)),
    ]

    private func perform(_ client: Client, _ method: Request.Method, _ path: String) async -> Case.End {
        do throws(NetworkError) {
            let body: Request.Body = method == .post ? .text("x") : .none
            let data = try await client.response(for: client.request(method, path, body: body), as: Data.self).value
            return .body(data.count)
        } catch {
            return .failure(error.kind)
        }
    }

    @Test func aGETEndsAsItsPathSays() async throws {
        let peer = try await AioQUICPeer()
        for each in Self.cases {
            // A first request opens the connection, which the second one uses.
            let client = try peer.client()
            #expect(await perform(client, .get, "/hello?first") == .body(5))
            #expect(await perform(client, .get, each.path) == each.end, "\(each)")
            #expect(try peer.count("GET", each.path) == each.gets, "\(each)")
            // Another connection serves further requests.
            #expect(await perform(client, .get, "/hello?last") == .body(5), "\(each)")
        }
    }

    @Test func aPOSTIsSentAgainOnlyIfItWasNotProcessed() async throws {
        let peer = try await AioQUICPeer()
        for each in Self.cases where each.posts > 1 || each.postEnd != nil {
            let client = try peer.client()
            #expect(await perform(client, .post, "/hello?first") == .body(5))
            #expect(await perform(client, .post, each.path) == each.postEnd ?? each.end, "\(each)")
            #expect(try peer.count("POST", each.path) == each.posts, "\(each)")
        }
    }

    @Test func aRequestIsRejectedForGoodInTheEnd() async throws {
        let peer = try await AioQUICPeer()
        #expect(await perform(try peer.client(), .get, "/reject/1000") == .failure(.connectionLost))
        let count = try peer.count("GET", "/reject/1000")
        #expect(2...10 ~= count, "\(count)")
    }

    @Test func aRetryProvesTheAddress() async throws {
        let peer = try await AioQUICPeer("--retry=1")
        let client = try peer.client()
        #expect(try await client.get("/body/100000", as: Data.self) == Data(AioQUICPeer.pattern(100_000)))
        #expect(try peer.connections() == 1)
    }

    @Test func anEarlyAnswerEndsAnUpload() async throws {
        let peer = try await AioQUICPeer("--window=20000", "--connection_window=50000")
        let client = try peer.client { $0.validation.statuses = { _ in true } }
        let body = Data(repeating: 7, count: 4 << 20)
        let response = try await client.response(
            for: client.request(.post, "/early", body: .data(body)), as: String.self)
        #expect(response.head.status == 413 && response.value == "no")
        #expect(try await client.get("/hello", as: String.self) == "hello")
    }

    @Test func anUploadFitsIntoSmallWindows() async throws {
        let peer = try await AioQUICPeer("--window=3000", "--connection_window=5000")
        let client = try peer.client()
        let body = Data(AioQUICPeer.pattern(200_000))
        #expect(try await client.post("/echo", body: .data(body), as: Data.self) == body)
    }

    @Test func aSilentServerIsGoneAfterThreeSeconds() async throws {
        let peer = try await AioQUICPeer()
        let client = try peer.client { $0.timeouts.idle = .seconds(40) }
        #expect(try await client.get("/hello", as: String.self) == "hello")
        let start = ContinuousClock.now
        let error = try await failure { try await client.post("/hole", body: .text("x"), as: String.self) }
        #expect(error.kind == .connectionLost, "\(error)")
        // Not before its time, which is long below the limit of the request.
        #expect(ContinuousClock.now - start > .seconds(2))
        #expect(try peer.count("POST", "/hole") == 1)
        #expect(try await client.get("/hello?next", as: String.self) == "hello")
        #expect(try peer.connections() == 2)
    }

    @Test func aSessionIsResumedByATicket() async throws {
        let peer = try await AioQUICPeer()
        let client = try peer.client { $0.maximumConnectionUses = 1 }
        for _ in 0..<4 { #expect(try await client.get("/hello", as: String.self) == "hello") }
        #expect(try peer.connections() == 4)
        let lines = try peer.lines()
        #expect(lines.contains("resumed"), "\(lines)")
    }

    @Test func aBadNetworkChangesNoByte() async throws {
        let peer = try await AioQUICPeer("--lost=40", "--doubled=50", "--delayed=200", "--changed=20", "--seed=3")
        let client = try peer.client()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<30 {
                group.addTask {
                    let body = Data(AioQUICPeer.pattern(20_000 + number))
                    if number % 2 == 0 {
                        let received = try await client.get("/body/\(body.count)", as: Data.self)
                        #expect(received == body)
                    } else {
                        let received = try await client.post("/echo", body: .data(body), as: Data.self)
                        #expect(received == body)
                    }
                }
            }
            try await group.waitForAll()
        }
        let posts = try peer.count("POST", "/echo")
        #expect(posts == 15)
    }
}
#endif
