import TernConcurrency

/// Watches the status of a source while it has listeners. Performs the actions of `WatchState`.
final class StatusWatch: Sendable {
    private struct Shared {
        var state = WatchState()
        var open: (any ReachabilityWatch)?
    }

    private let source: any ReachabilitySource
    private let latest = Latest(Reachability.Status.unknown)
    private let shared = Lock(Shared())
    /// True once the status was requested where only a watch provides it. The watch then stays open.
    private let hasPermanentWatch = Lock(false)

    init(_ source: any ReachabilitySource) { self.source = source }

    var status: Reachability.Status {
        if shared.withLock({ $0.state.isWatching }) { return latest.current }
        if let currentStatus = source.currentStatus { return currentStatus() }
        startPermanentWatchIfNeeded()
        return latest.current
    }

    func hasRoute(to address: String) -> Bool? { source.hasRoute(to: address) }

    func stream() -> AsyncStream<Reachability.Status> {
        join()
        return latest.stream(keeping: Listener(self))
    }

    /// Starts a permanent watch where only a watch provides the status.
    func startPermanentWatchIfNeeded() {
        guard source.currentStatus == nil else { return }
        let isFirst = hasPermanentWatch.withLock { hasPermanentWatch in
            defer { hasPermanentWatch = true }
            return !hasPermanentWatch
        }
        if isFirst { join() }
    }

    /// Ends every stream and the watch.
    func end() {
        perform { $0.ended() }
        latest.finish { $0 }
    }

    private func join() { perform { $0.joined() } }

    private func perform(_ decide: (inout WatchState) -> WatchState.Action) {
        let (action, closed) = shared.withLock { shared -> (WatchState.Action, (any ReachabilityWatch)?) in
            let action = decide(&shared.state)
            guard action == .close else { return (action, nil) }
            defer { shared.open = nil }
            return (action, shared.open)
        }
        switch action {
        case .nothing: break
        case .open(let number): open(number)
        case .close:
            closed?.close()
            resetStatus()
        }
    }

    /// Discards the last status, which can be outdated when the next listener comes.
    private func resetStatus() {
        latest.update { _ in isIdle ? .unknown : nil }
    }

    private var isIdle: Bool { shared.withLock { $0.state.isIdle } }

    private func open(_ number: UInt64) {
        // The number is compared inside the update, because a newer watch can report in between.
        let watch = source.watch { [weak self] status in
            self?.latest.update { old in
                guard let self, old != status, self.shared.withLock({ $0.state.isCurrent(number) }) else { return nil }
                return status
            }
        }
        guard let watch else {
            shared.withLock { $0.state.failed(number) }
            return resetStatus()
        }
        let isWanted = shared.withLock { shared in
            guard shared.state.opened(number) else { return false }
            shared.open = watch
            return true
        }
        if isWanted { return }
        watch.close()
        resetStatus()
    }

    /// Held by a stream. Its release ends the subscription.
    private final class Listener: Sendable {
        private let watch: StatusWatch
        init(_ watch: StatusWatch) { self.watch = watch }
        deinit { watch.perform { $0.left() } }
    }
}

/// Decides when the network is watched: while there are listeners. Each watch has a number, so that late reports of an
/// older watch are ignored.
struct WatchState {
    private enum Phase: Equatable {
        case idle
        case opening(UInt64)
        case watching(UInt64)
        case ended
    }

    enum Action: Equatable {
        case nothing
        /// Opens a watch. The caller then calls `opened` or `failed` with this number.
        case open(UInt64)
        /// Closes the open watch.
        case close
    }

    private var phase = Phase.idle
    private var listeners = 0
    private var number: UInt64 = 0

    /// Whether a watch is open, so that its last report is the status.
    var isWatching: Bool {
        if case .watching = phase { true } else { false }
    }

    /// Whether no watch is open or opening, so that the last report can be outdated.
    var isIdle: Bool { phase == .idle }

    /// Adds a listener. If no watch could be opened before, another attempt is made.
    mutating func joined() -> Action {
        listeners += 1
        guard phase == .idle else { return .nothing }
        number += 1
        phase = .opening(number)
        return .open(number)
    }

    /// Removes a listener.
    mutating func left() -> Action {
        listeners -= 1
        return listeners == 0 ? leave(for: .idle) : .nothing
    }

    /// Ends the watch for good.
    mutating func ended() -> Action { leave(for: .ended) }

    private mutating func leave(for next: Phase) -> Action {
        guard phase != .ended else { return .nothing }
        defer { phase = next }
        // A watch that is still opening is closed by the caller that opens it.
        return isWatching ? .close : .nothing
    }

    /// Records that a watch is open. Returns false if it is no longer needed and must be closed.
    mutating func opened(_ number: UInt64) -> Bool {
        guard phase == .opening(number) else { return false }
        phase = .watching(number)
        return true
    }

    /// Records that a watch could not be opened.
    mutating func failed(_ number: UInt64) {
        if phase == .opening(number) { phase = .idle }
    }

    /// Returns whether reports of the watch with this number are current.
    func isCurrent(_ number: UInt64) -> Bool { phase == .opening(number) || phase == .watching(number) }
}
