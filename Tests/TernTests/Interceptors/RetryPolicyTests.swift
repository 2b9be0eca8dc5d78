import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Retry policy")
struct RetryPolicyTests {
    private let now = Date(timeIntervalSince1970: 784_111_777)

    private func error(status: Int, headers: Headers = [:]) throws -> NetworkError {
        let target = try Target(absolute: "https://a.example/")
        let head = ResponseHead(status: status, version: .http11, target: target, headers: headers)
        return NetworkError(
            FailureCause(.status, "refused"), request: try Request(.get, "https://a.example/"), response: head)
    }

    private func decision(
        _ error: NetworkError, method: Request.Method = .get, body: Request.Body = .none, failures: Int = 1,
        random: Double = 1, _ change: (inout RetryPolicy) -> Void = { _ in }
    ) throws -> RetryPolicy.Decision {
        var policy = RetryPolicy()
        change(&policy)
        let request = try Request(method, "https://a.example/", body: body)
        return policy.decision(after: error, of: request, failures: failures, now: now, random: random)
    }

    /// The process itself lacks descriptors, and a retry would need more.
    @Test func failureWithoutADescriptorIsNotRetried() throws {
        let failure = FailureCause(.connectionFailed, "no connection", underlying: OutOfDescriptors())
        let error = NetworkError(failure, request: try Request(.get, "https://a.example/"))
        #expect(try decision(error) == .giveUp)
    }

    @Test(arguments: [408, 429, 500, 502, 503, 504]) func transientStatusIsRetried(status: Int) throws {
        #expect(try decision(error(status: status)) == .retry(after: .milliseconds(500)))
    }

    @Test(arguments: [400, 401, 403, 404, 409, 418, 501, 505]) func otherStatusesAreNotRetried(status: Int) throws {
        #expect(try decision(error(status: status)) == .giveUp)
    }

    @Test(arguments: [NetworkError.Kind.connectionLost, .connectionRefused, .idleTimedOut, .dns, .truncatedBody])
    func transportFailureIsRetried(kind: NetworkError.Kind) throws {
        #expect(try decision(NetworkError(kind, reason: "")) != .giveUp)
    }

    @Test(arguments: [
        NetworkError.Kind.cancelled, .untrustedServer, .invalidRequest, .decoding, .totalTimedOut, .tooLarge,
    ])
    func permanentFailureIsNotRetried(kind: NetworkError.Kind) throws {
        #expect(try decision(NetworkError(kind, reason: "")) == .giveUp)
    }

    @Test func onlyIdempotentMethodsAreRetriedByDefault() throws {
        let lost = NetworkError(.connectionLost, reason: "")
        for method: Request.Method in [.get, .head, .put, .delete, .options, .trace] {
            #expect(try decision(lost, method: method) != .giveUp)
        }
        for method: Request.Method in [.post, .patch] {
            #expect(try decision(lost, method: method) == .giveUp)
            #expect(try decision(lost, method: method) { $0.methods.insert(method) } != .giveUp)
        }
    }

    @Test func bodyThatCanBeSentOnlyOnceIsNotSentAgain() throws {
        let stream = Request.Body.stream(AsyncStream<Data> { $0.finish() })
        #expect(try decision(error(status: 503), method: .put, body: stream) == .giveUp)
        #expect(try decision(error(status: 503), method: .put, body: .text("x")) != .giveUp)
    }

    @Test func waitsDoubleUpToTheirBoundWithFullJitter() throws {
        let bounds = try (1...8).map { failures in
            try decision(error(status: 503), failures: failures) { policy in
                policy.limit = 10
                policy.maximumDelay = .seconds(8)
            }
        }
        #expect(bounds == [0.5, 1, 2, 4, 8, 8, 8, 8].map { .retry(after: .milliseconds(Int($0 * 1_000))) })
        #expect(try decision(error(status: 503), random: 0) == .retry(after: .zero))
        #expect(try decision(error(status: 503), random: 0.5) == .retry(after: .milliseconds(250)))
    }

    @Test func limitEndsRetries() throws {
        #expect(try decision(error(status: 503), failures: 2) != .giveUp)
        #expect(try decision(error(status: 503), failures: 3) == .giveUp)
        #expect(try decision(error(status: 503), failures: 1) { $0.limit = 0 } == .giveUp)
    }

    @Test(arguments: [
        ("3", 3.0), ("0", 0), ("Sun, 06 Nov 1994 08:49:42 GMT", 5), ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
    ])
    func serverDeterminesTheWait(value: String, seconds: Double) throws {
        #expect(
            try decision(error(status: 503, headers: ["Retry-After": value]), random: 0)
                == .retry(after: .seconds(seconds)))
    }

    @Test func waitBeyondTheLimitEndsRetries() throws {
        #expect(try decision(error(status: 429, headers: ["Retry-After": "61"])) == .giveUp)
        #expect(try decision(error(status: 429, headers: ["Retry-After": "99999999999999"])) == .giveUp)
        let digits = String(repeating: "9", count: 40)
        #expect(try decision(error(status: 429, headers: ["Retry-After": digits])) == .giveUp)
        for invalid in ["soon", "1.5", "-1", "3s"] {
            let headers: Headers = ["Retry-After": invalid]
            #expect(try decision(error(status: 429, headers: headers)) == .retry(after: .milliseconds(500)))
        }
    }

    @Test func budgetAllowsOneRetryForFiveRequests() {
        let budget = RetryBudget(ratio: 0.2, reserve: 2)
        #expect(budget.withdraw() && budget.withdraw() && !budget.withdraw())
        for _ in 0..<5 { budget.deposit() }
        #expect(budget.withdraw() && !budget.withdraw())
        for _ in 0..<100 { budget.deposit() }
        #expect(budget.withdraw() && budget.withdraw() && !budget.withdraw())
    }
}
