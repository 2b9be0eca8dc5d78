import Tern
import TernConcurrency

/// Where a played exchange stops: for a pause, for a reader that is behind, for a body that is not there yet. Pure.
struct StubGate {
    enum Condition {
        case running
        case demanded
        case bodyReady
    }

    enum Step {
        case pass
        case ended
        case wait(Waiter<Void>)
    }

    private(set) var isEnded = false
    private var isPaused = false
    private var isDemanded = false
    private var isBodyReady = false
    private var waiter: Waiter<Void>?

    /// Returns who waits and may look again.
    mutating func apply(_ command: TransferCommand) -> Waiter<Void>? {
        switch command {
        case .pause: isPaused = true
        case .resume: isPaused = false
        case .demand: isDemanded = true
        case .bodyReady: isBodyReady = true
        case .prioritize, .cancel: return nil
        }
        return takeWaiter()
    }

    /// The reader's demand for what comes now may come before the exchange waits for it.
    mutating func expectsDemand() { isDemanded = false }

    mutating func end() -> Waiter<Void>? {
        isEnded = true
        return takeWaiter()
    }

    mutating func pass(_ condition: Condition) -> Step {
        if isEnded { return .ended }
        let isOpen =
            switch condition {
            case .running: true
            case .demanded: isDemanded
            case .bodyReady: isBodyReady
            }
        guard isOpen, !isPaused else {
            let waiter = Waiter<Void>()
            self.waiter = waiter
            return .wait(waiter)
        }
        if condition == .bodyReady { isBodyReady = false }
        return .pass
    }

    private mutating func takeWaiter() -> Waiter<Void>? {
        defer { waiter = nil }
        return waiter
    }
}
