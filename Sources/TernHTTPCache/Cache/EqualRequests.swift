import Synchronization
import Tern
import TernConcurrency

/// Identifies equal requests.
struct SharingKey: Hashable, Sendable {
    let key: CacheKey
    let credentials: String?
    /// The fields that select among the known variants of the response.
    let variant: VarySelection
}

/// The end of an exchange for those who wait for it.
enum SharingEnd: Sendable, Equatable {
    /// The response is stored: look again.
    case stored
    /// The response is not for others: send the own request.
    case notShared
    /// The exchange was cancelled or paused, or its response was dropped: one of those who wait takes its place.
    case abandoned
    /// The waiting task was cancelled.
    case cancelled
    /// A time limit of the waiting task has passed.
    case timedOut(Timeouts.Phase)
}

/// The part of a request among equal ones.
enum SharingRole: Sendable {
    case sender(SharedExchange)
    /// The exchange is nil if it is not on its way: the response is being written.
    case waiter(Waiter<SharingEnd>, NetworkExchange?)
}

/// An exchange that equal requests wait for. Dropping it without an end abandons it.
final class SharedExchange: Sendable {
    private let requests: WaitingRequests
    private let key: SharingKey
    private let state: CacheState
    private let hasEnded = Atomic<Bool>(false)
    private let isAbandoned = Atomic<Bool>(false)

    /// Creates the exchange for which requests wait.
    init(_ requests: WaitingRequests, of key: SharingKey, in state: CacheState) {
        self.requests = requests
        self.key = key
        self.state = state
    }

    deinit { end(.abandoned) }

    /// Sets the exchange on the network, whose progress those who wait see. A task that is paused abandons it: nobody
    /// waits for one that moves no byte.
    func begin(_ exchange: NetworkExchange) {
        requests.setExchange(exchange)
        exchange.whenPaused { [weak self] in self?.end(.abandoned) }
    }

    /// Calls a function as soon as an equal request waits: at once, or when one begins to.
    func whenAwaited(_ check: @escaping WaitingRequests.Check) {
        if requests.setCheck(check) { check() }
    }

    /// Turns a later `end(_:)` into `.abandoned`, so that one of the waiting requests is sent.
    func willBeAbandoned() { isAbandoned.store(true, ordering: .releasing) }

    /// Ends the wait of the equal requests. Only the first call has an effect.
    func end(_ end: SharingEnd) {
        guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
        state.end(key, requests, as: isAbandoned.load(ordering: .acquiring) ? .abandoned : end)
    }
}

/// The requests that wait for one exchange.
final class WaitingRequests: Sendable {
    /// Ends the wait if the response turns out not to be storable.
    typealias Check = @Sendable () -> Void

    private struct State {
        var exchange: NetworkExchange?
        /// Called when a request begins to wait.
        var check: Check?
        var waiters: [Waiter<SharingEnd>] = []
    }

    private let state = Lock(State())

    /// The number of the requests.
    var count: Int { state.withLock { $0.waiters.count } }

    /// Sets the exchange on the network.
    func setExchange(_ exchange: NetworkExchange) { state.withLock { $0.exchange = exchange } }

    /// Sets the function to call when a request begins to wait. Returns whether one waits already.
    func setCheck(_ check: @escaping Check) -> Bool {
        state.withLock { state in
            state.check = check
            return !state.waiters.isEmpty
        }
    }

    /// Adds a request. Returns its waiter, the exchange, and the function to call then.
    func add() -> (Waiter<SharingEnd>, NetworkExchange?, Check?) {
        state.withLock { state in
            let waiter = Waiter<SharingEnd>()
            state.waiters.append(waiter)
            return (waiter, state.exchange, state.check)
        }
    }

    /// Removes a request.
    func remove(_ waiter: Waiter<SharingEnd>) { state.withLock { $0.waiters.removeAll { $0 === waiter } } }

    /// Removes and returns all requests at the end of the exchange, and lets go of what it has.
    func takeAll() -> [Waiter<SharingEnd>] {
        let last = state.withLock { state in
            defer { state = State() }
            return state
        }
        return last.waiters
    }
}

/// The exchanges that equal requests wait for.
struct WaitTable {
    private static let bucketCount = 64

    private var exchanges: [SharingKey: WaitingRequests] = [:]
    /// The last stored exchange of each bucket of keys. Keys that share a bucket cost a look-up, and nothing else.
    private var lastStored = [UInt64](repeating: 0, count: bucketCount)

    /// The requests that wait for the exchange of a key; nil without an exchange.
    subscript(key: SharingKey) -> WaitingRequests? { exchanges[key] }

    /// The number of the requests that wait.
    var waiterCount: Int { exchanges.values.reduce(0) { $0 + $1.count } }

    /// Begins the exchange of a key that has none.
    mutating func begin(_ key: SharingKey) -> WaitingRequests {
        let requests = WaitingRequests()
        exchanges[key] = requests
        return requests
    }

    /// Ends the exchange of a key.
    mutating func end(_ key: SharingKey) { exchanges[key] = nil }

    /// Records that the response of an exchange is stored. The numbers of such exchanges increase.
    mutating func recordStored(_ key: CacheKey, as number: UInt64) { lastStored[Self.bucket(of: key)] = number }

    /// Returns whether a response for a key may have been stored after the exchange with a number.
    func hasStored(_ key: CacheKey, after number: UInt64) -> Bool { lastStored[Self.bucket(of: key)] > number }

    private static func bucket(of key: CacheKey) -> Int { Int(UInt(bitPattern: key.hashValue) % UInt(bucketCount)) }
}
