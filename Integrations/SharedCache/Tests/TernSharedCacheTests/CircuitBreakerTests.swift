import Testing

@testable import TernSharedCache

@Suite("Circuit breaker") struct CircuitBreakerTests {
    private let start = ContinuousClock.now

    @Test func someFailuresInARowOpenIt() {
        var breaker = CircuitBreaker(failureLimit: 3, pause: .seconds(5))
        for _ in 0..<2 { breaker.fail(at: start) }
        #expect(begins(&breaker, .zero))
        breaker.succeed()
        for _ in 0..<2 { breaker.fail(at: start) }
        #expect(!breaker.isOpen(at: start))
        breaker.fail(at: start)
        #expect(breaker.isOpen(at: start))
        #expect(!begins(&breaker, .milliseconds(4_999)))
    }

    private func begins(_ breaker: inout CircuitBreaker, _ time: Duration) -> Bool {
        breaker.mayBegin(at: start + time)
    }

    @Test func oneOperationTriesAfterThePause() {
        var breaker = CircuitBreaker(failureLimit: 1, pause: .seconds(5))
        breaker.fail(at: start)
        let later = start + .seconds(5)
        #expect(begins(&breaker, .seconds(5)))
        #expect(breaker.isOpen(at: later))
        #expect(!begins(&breaker, .seconds(5)))
        breaker.fail(at: later)
        #expect(!begins(&breaker, .seconds(9)))
        #expect(begins(&breaker, .seconds(10)))
        breaker.succeed()
        for _ in 0..<2 { #expect(begins(&breaker, .seconds(10))) }
    }

    @Test func anAttemptWithoutAnEndIsFollowedByAnother() {
        var breaker = CircuitBreaker(failureLimit: 1, pause: .seconds(5))
        breaker.fail(at: start)
        #expect(begins(&breaker, .seconds(5)))
        #expect(!begins(&breaker, .seconds(9)))
        #expect(begins(&breaker, .seconds(10)))
    }
}
