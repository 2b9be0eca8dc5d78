import TernTesting
import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Bodies that the task does not deliver: those of refused responses and of redirects.
@Suite("Bodies that are not delivered", .timeLimit(.minutes(1)))
struct UnwantedBodyTests {
    enum Kind: CaseIterable {
        case stream
        case download
    }

    /// A body whose second half never arrives: the clock of the stub stands still.
    private static func slow(_ status: Int, headers: Headers = [:]) -> StubTransport.Answer {
        .chunks([Data("start".utf8), Data("never".utf8)], interval: .seconds(1), status: status, headers: headers)
    }

    private func consume(_ kind: Kind, _ client: Client) async throws {
        switch kind {
        case .stream: for try await _ in client.stream("x").chunks {}
        case .download: _ = try await client.download("x", destination: nil).value
        }
    }

    private func failure(of operation: () async throws -> Void) async throws -> NetworkError? {
        do {
            try await operation()
            return nil
        } catch let error as NetworkError {
            return error
        }
    }

    @Test(arguments: Kind.allCases)
    func errorOfARefusedResponseWaitsFiveSecondsForItsBody(kind: Kind) async throws {
        let (clock, stubClock) = (ManualClock(), ManualClock())
        let stub = StubTransport(clock: stubClock) { _ in Self.slow(503) }
        let session = Session(configuration: Session.Configuration(), transport: stub, clock: clock)
        let client = try Client(baseURL: "https://a.example", session: session)
        let task = Task { try await failure { try await consume(kind, client) } }
        try await stubClock.waitForSleepers(1)
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(4_999))
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(1))
        let error = try #require(try await task.value)
        #expect(error.kind == .status && error.status == 503)
        #expect(error.body == Data("start".utf8))
    }

    @Test(arguments: Kind.allCases)
    func errorOfARefusedResponseNeedsNoTimerForACompleteBody(kind: Kind) async throws {
        let clock = ManualClock()
        let stub = StubTransport { _ in .text("whole", status: 404) }
        let session = Session(configuration: Session.Configuration(), transport: stub, clock: clock)
        let client = try Client(baseURL: "https://a.example", session: session)
        let error = try #require(try await failure { try await consume(kind, client) })
        #expect(error.status == 404 && error.body == Data("whole".utf8))
    }

    @Test func redirectWaitsOneSecondForTheRestOfItsBody() async throws {
        let (clock, stubClock) = (ManualClock(), ManualClock())
        let stub = StubTransport(clock: stubClock) { call in
            call.path == "/end" ? .text("the end") : Self.slow(302, headers: ["Location": "/end"])
        }
        let session = Session(configuration: Session.Configuration(), transport: stub, clock: clock)
        let client = try Client(baseURL: "https://a.example", session: session)
        let task = Task { try await client.get("x", as: String.self) }
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(999))
        try await clock.waitForSleepers(1)
        #expect(stub.calls.map(\.path) == ["/x"])
        clock.advance(by: .milliseconds(1))
        #expect(try await task.value == "the end")
    }

    @Test(arguments: ["http://", "https://[::1", "//", "https://a.example:99999/", "myapp://x", "http://a.example/"])
    func redirectThatLeadsNowhereIsTheResponseOfASessionThatStaysOnItsOrigin(location: String) async throws {
        let stub = StubTransport { _ in
            StubTransport.Answer.text("moved", status: 302, headers: ["Location": location])
        }
        var configuration = Session.Configuration()
        let request = try Request(.get, "https://a.example/x")
        configuration.redirects = .sameOrigin
        let response = try await Session(configuration: configuration, stub: stub).response(for: request)
        #expect(response.status == 302 && response.value == Data("moved".utf8))
        configuration.redirects = .follow
        let error = try await failure {
            _ = try await Session(configuration: configuration, stub: stub).response(for: request)
        }
        #expect(error?.kind == .redirect)
    }

    @Test func transactionsCountExchangesAndAttemptsCountTries() async throws {
        let clock = ManualClock()
        let stub = StubTransport { _ in .text("busy", status: 503) }
        var configuration = Session.Configuration()
        configuration.interceptors = [RetryInterceptor(clock: clock)]
        let client = try Client(
            baseURL: "https://a.example", session: Session(configuration: configuration, stub: stub))
        let task = Task { try await failure { try await client.get("x") } }
        for _ in 1...2 {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(10))
        }
        let error = try #require(try await task.value)
        #expect(error.attempts == 3)
        #expect(error.metrics?.transactions == 1)
    }
}
