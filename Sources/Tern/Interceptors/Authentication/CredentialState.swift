import TernConcurrency

/// Which credential is current, and whether it is being renewed. Pure.
struct CredentialState<Credential: Sendable>: Sendable {
    /// A credential, and how many there were before it: a refusal of an old one renews nothing.
    struct Issued: Sendable {
        let credential: Credential
        let generation: Int
    }

    enum Action: Sendable {
        case use(Issued)
        /// The caller renews; everybody else waits.
        case refresh(Credential?)
        case wait
        /// So many refreshes in so short a time mean that they do not help.
        case tooMany
    }

    private(set) var current: Issued?
    private var isRefreshing = false
    private var generation = 0
    /// When the last refreshes began, in nanoseconds.
    private var starts: [UInt64] = []
    private let limit: Int
    private let window: UInt64

    init(_ credential: Credential?, limit: Int, window: Duration) {
        current = credential.map { Issued(credential: $0, generation: 0) }
        self.limit = limit
        self.window = window.wholeNanoseconds
    }

    /// What a request that is about to be sent does. `isSpent` asks whether the credential is about to run out.
    mutating func action(now: UInt64, isSpent: (Credential) -> Bool) -> Action {
        if isRefreshing { return .wait }
        if let current, !isSpent(current.credential) { return .use(current) }
        return start(now)
    }

    /// What a request whose credential was refused does.
    mutating func action(afterRefusalOf refused: Int, now: UInt64) -> Action {
        if isRefreshing { return .wait }
        if let current, current.generation > refused { return .use(current) }
        return start(now)
    }

    private mutating func start(_ now: UInt64) -> Action {
        starts.removeAll { [window] start in now >= start && now - start >= window }
        guard starts.count < limit else { return .tooMany }
        starts.append(now)
        isRefreshing = true
        return .refresh(current?.credential)
    }

    mutating func renewed(_ credential: Credential) -> Issued {
        generation += 1
        let issued = Issued(credential: credential, generation: generation)
        current = issued
        isRefreshing = false
        return issued
    }

    /// The old credential stays: the next request tries again.
    mutating func refreshFailed() { isRefreshing = false }

    /// A credential from outside: after a login, or nil after a logout.
    mutating func replace(_ credential: Credential?) {
        generation += 1
        current = credential.map { Issued(credential: $0, generation: generation) }
    }
}
