import Synchronization
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The caller's values that travel with a request.
@Suite("Wire: user info", .timeLimit(.minutes(1)))
struct UserInfoTests {
    private enum Feature: Request.UserInfoKey { typealias Value = String }
    private enum Attempts: Request.UserInfoKey { typealias Value = Int }

    /// Notes the value wherever it is met.
    private final class Watcher: SessionObserver, SessionPolicy, Interceptor {
        let seen = Mutex<[String]>([])

        func note(_ place: String, _ request: Request?) {
            seen.withLock { $0.append("\(place) \(request?.userInfo[Feature.self] ?? "none")") }
        }

        func willSend(_ request: Request, of task: AnySessionTask) {
            note("send", request)
            note("task", task.request)
        }
        func didObserve(_ event: TaskRegistry.Event) {
            if case .completed(let end) = event { note("end", end.task.request) }
        }
        func disposition(of response: ResponseHead, for task: AnySessionTask) async throws -> ResponseDisposition? {
            note("policy", task.request)
            return nil
        }
        func intercept(_ request: Request, next: Next) async throws -> Reply {
            note("intercept", request)
            return try await next(request)
        }
    }

    @Test func theValuesTravelWithTheRequest() async throws {
        let watcher = Watcher()
        let stub = StubTransport { call in
            call.path == "/moved" ? .status(302, headers: ["Location": "/there"]) : .text("there")
        }
        var configuration = Session.Configuration()
        configuration.observers = [watcher]
        configuration.interceptors = [watcher]
        configuration.policy = watcher
        let client = Client(stub: stub, configuration: configuration)
        let task = client.task(.get, "moved") { $0.userInfo[Feature.self] = "home" }
        #expect(try await task.value == Data("there".utf8))
        await client.session.drained()
        let seen = watcher.seen.withLock { $0 }
        #expect(seen.allSatisfy { $0.hasSuffix(" home") }, "\(seen)")
        #expect(Set(seen.map { $0.prefix { $0 != " " } }) == ["send", "task", "end", "policy", "intercept"])
        #expect(task.request?.userInfo[Feature.self] == "home" && task.request?.userInfo[Attempts.self] == nil)
        // Nothing of them is sent.
        #expect(stub.calls.allSatisfy { call in !call.headers.contains { "\($0)".contains("home") } })
    }

    @Test func anErrorHasThem() async throws {
        let client = Client(stub: StubTransport { _ in .status(500) })
        let error = try await failure {
            try await client.get("x") {
                $0.userInfo[Feature.self] = "secret"
                $0.userInfo[Attempts.self] = 3
            }
        }
        #expect(error.request?.userInfo[Feature.self] == "secret" && error.request?.userInfo[Attempts.self] == 3)
        var dumped = ""
        dump(error.request, to: &dumped)
        #expect(!dumped.contains("secret") && !"\(error)".contains("secret"))
    }

    @Test func aValueIsReplacedAndRemoved() throws {
        var request = try Request(.get, "https://a.example")
        #expect(request.userInfo.isEmpty && "\(request.userInfo)" == "0 values")
        request.userInfo[Feature.self] = "a"
        let copy = request
        request.userInfo[Feature.self] = "b"
        #expect(request.userInfo[Feature.self] == "b" && copy.userInfo[Feature.self] == "a")
        #expect(request.userInfo.count == 1 && "\(request.userInfo)" == "1 value")
        request.userInfo[Feature.self] = nil
        #expect(request.userInfo.isEmpty)
    }
}
