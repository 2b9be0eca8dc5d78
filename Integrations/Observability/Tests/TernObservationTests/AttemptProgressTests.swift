import Tern
import TernTesting
import Testing

@testable import TernObservation

@Suite("Beginnings and ends of requests")
struct AttemptProgressTests {
    private let start = ContinuousClock.now

    private func at(_ milliseconds: Int) -> ContinuousClock.Instant { start.advanced(by: .milliseconds(milliseconds)) }

    private func head(_ status: Int) throws -> ResponseHead {
        Reply(to: try Request(.get, "https://example.com/"), status: status).head
    }

    /// Returns an error of the kind, made by a request that cannot be created.
    private func invalid() throws -> NetworkError {
        try #require(throws: NetworkError.self) { try Request(.get, "nonsense") }
    }

    /// Returns the progress of a task that has sent its first request at 0 ms.
    private func running() -> AttemptProgress<String> {
        var progress = AttemptProgress<String>()
        #expect(progress.beginAttempt() == nil && progress.open("one", at: at(0)) == nil)
        return progress
    }

    @Test func aRedirectEndsARequest() throws {
        var progress = running()
        progress.receive(try head(302), at: at(7))
        let ended = progress.endAtLatestStage()
        #expect(ended?.state == "one" && ended?.end.duration == .milliseconds(7))
        #expect(ended?.end.response?.status == 302 && ended?.end.errorType == nil)
        #expect(progress.beginAttempt() == nil && progress.count == 2)
    }

    /// Returns the measurements of a request, because only Tern makes them.
    private func measured() async throws -> TaskMetrics {
        let session = Session(stub: StubTransport { _ in .text("x") })
        return try await session.response(for: Request(.get, "https://example.com/")).metrics
    }

    @Test func aRedirectWaitsForItsMeasurements() async throws {
        let metrics = try await measured()
        var progress = running()
        progress.receive(try head(302), at: at(7))
        #expect(progress.willContinue(isRedirect: true) == nil && progress.isRedirected)
        let ended = progress.measure(metrics)
        #expect(ended?.end.duration == .milliseconds(7) && ended?.end.metrics != nil)
        // Those of the next request.
        #expect(progress.beginAttempt() == nil && progress.open("two", at: at(9)) == nil)
        #expect(progress.measure(metrics) == nil)
        #expect(progress.willContinue(isRedirect: false)?.state == "two" && !progress.isRedirected)
    }

    @Test func measurementsThatDoNotComeEndNothingLate() throws {
        var progress = running()
        progress.receive(try head(302), at: at(7))
        #expect(progress.willContinue(isRedirect: true) == nil)
        let ended = progress.endTask(error: try invalid(), total: nil, at: at(50))
        #expect(ended?.end.duration == .milliseconds(7) && ended?.end.error == nil && ended?.end.metrics == nil)
    }

    @Test func theNextRequestEndsAChallengeAtItsHead() throws {
        var progress = running()
        progress.receive(try head(401), at: at(5))
        let ended = progress.beginAttempt()
        #expect(ended?.end.duration == .milliseconds(5) && ended?.end.errorType == "401")
    }

    @Test func aRefusedResponseEndsItsRequestAtOnce() throws {
        var progress = running()
        progress.receive(try head(503), at: at(5))
        let ended = progress.validate(error: try invalid(), at: at(9))
        #expect(ended?.end.duration == .milliseconds(9) && ended?.end.errorType == "503")
        #expect(progress.endAtLatestStage() == nil)
        #expect(progress.endTask(error: try invalid(), total: nil, at: at(900)) == nil)
    }

    @Test func aFailureEndsItsRequestBeforeTheWaitOfARetry() throws {
        var progress = running()
        let ended = progress.fail(try invalid(), at: at(3))
        #expect(ended?.end.duration == .milliseconds(3) && ended?.end.errorType == "invalid-request")
        #expect(progress.state == nil && progress.beginAttempt() == nil)
    }

    @Test func theAnswerOfACacheIsNotThatOfTheServer() throws {
        var progress = running()
        progress.receive(try head(304), at: at(2))
        progress.receive(try head(200), at: at(3))
        let ended = progress.endTask(error: nil, total: nil, at: at(4))
        #expect(ended?.end.response?.status == 304)
    }

    @Test func theTimeOfADecoderDoesNotCount() throws {
        var progress = running()
        progress.receive(try head(200), at: at(2))
        progress.receiveBytes(at: at(4))
        #expect(progress.validate(error: nil, at: at(5)) == nil)
        let ended = progress.endTask(error: nil, total: .milliseconds(4), at: at(800))
        #expect(ended?.end.duration == .milliseconds(5) && ended?.end.error == nil)
    }

    @Test(arguments: [(40, 40), (900, 60)])
    func theTransportMeasuresABodyThatIsRead(total: Int, expected: Int) throws {
        var progress = running()
        progress.receive(try head(200), at: at(2))
        #expect(progress.validate(error: nil, at: at(3)) == nil)
        progress.receiveBytes(at: at(30))
        let ended = progress.endTask(error: try invalid(), total: .milliseconds(total), at: at(60))
        #expect(ended?.end.duration == .milliseconds(expected) && ended?.end.errorType == "invalid-request")
    }

    @Test func aRequestThatBeginsAfterTheEndOfItsTaskEndsAtOnce() {
        var progress = AttemptProgress<String>()
        #expect(progress.beginAttempt() == nil)
        #expect(progress.endTask(error: nil, total: nil, at: at(1)) == nil)
        #expect(progress.open("one", at: at(2))?.end.duration == .zero)
    }
}

@Suite("Facts of a request")
struct RequestFactsTests {
    @Test(arguments: [
        ("https://example.com/a", "example.com", 443), ("http://example.com", "example.com", 80),
        ("http://[::1]:8080/x:y", "::1", 8080), ("https://[2001:db8::1]/", "2001:db8::1", 443),
        ("https://ada:s3cret@example.com:8443/?a=b:c@d", "example.com", 8443),
    ])
    func theServerIsThatOfTheURL(url: String, address: String, port: Int) throws {
        let facts = RequestFacts(try Request(.get, url))
        #expect(facts.server.address == address && facts.server.port == port)
    }

    @Test func theURLHasNoSecrets() throws {
        let facts = RequestFacts(try Request("PURGE", "https://ada:s3cret@example.com/x?token=s3cret&b#s3cret"))
        #expect(facts.url == "https://example.com/x?token=<redacted>&b")
        #expect(facts.method == "_OTHER" && facts.originalMethod == "PURGE")
        #expect(RequestFacts(try Request(.patch, "https://example.com/")).originalMethod == nil)
    }

    @Test func spanNamesAreThoseOfTheConventions() throws {
        func name(_ method: Request.Method, _ template: String?, isRedirected: Bool = false) throws -> String {
            var request = try Request(method, "https://example.com/users/7")
            request.userInfo[Request.URLTemplate.self] = template
            return RequestFacts(request, isRedirected: isRedirected).spanName
        }
        #expect(try name(.get, nil) == "GET" && name(.get, "/users/{id}") == "GET /users/{id}")
        #expect(try name("PURGE", nil) == "HTTP" && name("PURGE", "/users/{id}") == "HTTP /users/{id}")
        #expect(try name("get", nil) == "HTTP" && name("QUERY", nil) == "QUERY")
        #expect(try name(.get, "/users/{id}", isRedirected: true) == "GET")
        #expect(RequestFacts(try Request("PURGE", "https://a/"), knownMethods: ["PURGE"]).spanName == "PURGE")
    }
}
