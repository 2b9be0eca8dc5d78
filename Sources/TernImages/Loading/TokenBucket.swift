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

    /// Takes a token if one is there, and returns zero; else how long it is until there is one. None is promised: whoever is
    /// first in line by then takes it.
    mutating func take(at now: Duration) -> Duration {
        tokens = min(burst, tokens + max(0, (now - updated) / .seconds(1)) * perSecond)
        updated = max(updated, now)
        // A sum of parts may fall short of one by the last bit.
        guard tokens < 1 - 1e-9 else {
            tokens -= 1
            return .zero
        }
        return .seconds((1 - tokens) / perSecond)
    }

    /// Puts a token back that was of no use.
    mutating func giveBack() { tokens = min(burst, tokens + 1) }
}
