import TernConcurrency

/// What keeps many clients' retries from finishing off a server that is in trouble: a purse that every request pays a
/// little into and every retry takes one coin from. An empty purse means that most requests fail: retries would only add
/// to the load.
///
/// Share one budget among the interceptors of all sessions that talk to the same service.
public final class RetryBudget: Sendable {
    private let coins: Lock<Double>
    private let ratio: Double
    private let capacity: Double

    /// A full purse.
    ///
    /// - Parameters:
    ///   - ratio: Retries per request in the long run. 0.2 by default: one for five requests.
    ///   - reserve: Retries that are possible before that counts. 10 by default.
    public init(ratio: Double = 0.2, reserve: Int = 10) {
        self.ratio = max(0, ratio)
        capacity = Double(max(0, reserve))
        coins = Lock(Double(max(0, reserve)))
    }

    /// A request is made.
    func deposit() {
        coins.withLock { $0 = min(capacity, $0 + ratio) }
    }

    /// Whether a retry can be afforded; it is paid then.
    func withdraw() -> Bool {
        coins.withLock { coins in
            // Sums of fractions: five deposits of 0.2 are a little less than one.
            guard coins > 0.999_999 else { return false }
            coins -= 1
            return true
        }
    }
}
