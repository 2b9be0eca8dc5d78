import Dispatch
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The time that the system grants for loads while the app is in the background.
///
/// All loads share one grant, because each grant occupies a thread until it ends: it begins with the first load, and
/// ends with the last one or when the system takes it back.
final class BackgroundTime: Sendable {
    /// Asks the system for time, with a reason for its logs. The system calls the closure on a thread of its own: with
    /// false when it grants the time, which lasts until the closure returns, and with true when it grants none, or
    /// takes it back.
    typealias System = @Sendable (_ reason: String, _ body: @escaping @Sendable (_ isExpired: Bool) -> Void) -> Void

    private struct State {
        var rules = BackgroundTimeState()
        /// Signalled at the end of the newest grant.
        var end: DispatchSemaphore?
    }

    /// The time of this process; nil where no process is suspended in the background.
    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
    static let shared: BackgroundTime? = BackgroundTime { reason, body in
        ProcessInfo.processInfo.performExpiringActivity(withReason: reason, using: body)
    }
    #else
    static let shared: BackgroundTime? = nil
    #endif

    private let system: System
    private let state = Lock(State())

    init(_ system: @escaping System) { self.system = system }

    /// Asks for time, unless another load has it.
    func beginLoad() {
        let asked = state.withLock { state -> (grant: Int, end: DispatchSemaphore)? in
            guard case .ask(let grant) = state.rules.beginLoad() else { return nil }
            let end = DispatchSemaphore(value: 0)
            state.end = end
            return (grant, end)
        }
        guard let asked else { return }
        system("loading images") { [self] isExpired in
            guard isExpired else { return asked.end.wait() }
            state.withLock { $0.rules.expire(asked.grant) }
            asked.end.signal()
        }
    }

    /// Gives the time back after the last load. Called once for each begin.
    func endLoad() {
        let end = state.withLock { state in state.rules.endLoad() == .giveBack ? state.end.take() : nil }
        end?.signal()
    }
}

/// Decides when time is asked for and given back. Pure.
struct BackgroundTimeState: Sendable, Hashable {
    enum Action: Sendable, Hashable {
        case none
        /// Ask for the grant with this number.
        case ask(Int)
        case giveBack
    }

    /// The number of loads that run.
    private var loads = 0
    /// The number of grants so far, of which only the newest can be held.
    private var grants = 0
    /// Whether the newest grant was asked for and has not ended.
    private var isHeld = false

    mutating func beginLoad() -> Action {
        loads += 1
        guard !isHeld else { return .none }
        isHeld = true
        grants += 1
        return .ask(grants)
    }

    mutating func endLoad() -> Action {
        loads -= 1
        guard loads == 0, isHeld else { return .none }
        isHeld = false
        return .giveBack
    }

    /// The system refuses a grant or takes it back. The loads continue as far as it lets them, and the next load asks
    /// again.
    mutating func expire(_ grant: Int) {
        if grant == grants { isHeld = false }
    }
}
