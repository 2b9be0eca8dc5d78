/// How often something may begin: so many a second, and a burst after a pause. Pure, on time that it is given.
struct TokenBucket: Sendable {
    private let perSecond: Double
    private let burst: Double
    private var tokens: Double
    private var updated: Duration = .zero

    init(_ limit: ImagePipeline.RateLimit) {
        perSecond = max(0.001, limit.perSecond)
        burst = Double(max(1, limit.burst))
        tokens = burst
    }

    /// Takes a token that is there, or the next one to come: how long to wait for it.
    mutating func take(at now: Duration) -> Duration {
        tokens = min(burst, tokens + max(0, (now - updated) / .seconds(1)) * perSecond)
        updated = now
        tokens -= 1
        return tokens >= 0 ? .zero : .seconds(-tokens / perSecond)
    }
}
