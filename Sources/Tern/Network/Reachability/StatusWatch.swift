import TernConcurrency

/// The status of a source, watched while somebody listens: performs what `WatchState` decides.
final class StatusWatch: Sendable {
    private struct Shared {
        var state = WatchState()
        var open: (any ReachabilityWatch)?
    }

    private let source: any ReachabilitySource
    private let latest = Latest(Reachability.Status.unknown)
    private let shared = Lock(Shared())
    /// Where only a watch tells the status, whoever asks for it makes the watch stay.
    private let isKept = Lock(false)

    init(_ source: any ReachabilitySource) { self.source = source }

    var status: Reachability.Status {
        if shared.withLock({ $0.state.isWatching }) { return latest.current }
        if let ask = source.ask { return ask() }
        keepWhereNeeded()
        return latest.current
    }

    func stream() -> AsyncStream<Reachability.Status> {
        join()
        return latest.stream(keeping: Listener(self))
    }

    /// Begins a watch where only a watch tells the status.
    func keepWhereNeeded() {
        guard source.ask == nil else { return }
        let isFirst = isKept.withLock { isKept in
            defer { isKept = true }
            return !isKept
        }
        if isFirst { join() }
    }

    /// Every stream ends, and the watch with them.
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
            forget()
        }
    }

    /// What was true then need not be true when somebody listens again.
    private func forget() {
        latest.update { _ in isIdle ? .unknown : nil }
    }

    private var isIdle: Bool { shared.withLock { $0.state.isIdle } }

    private func open(_ number: UInt64) {
        // The number is looked at within the update: between the two a newer watch could have told already.
        let watch = source.watch { [weak self] status in
            self?.latest.update { old in
                guard let self, old != status, self.shared.withLock({ $0.state.isCurrent(number) }) else { return nil }
                return status
            }
        }
        guard let watch else {
            shared.withLock { $0.state.failed(number) }
            return forget()
        }
        let isWanted = shared.withLock { shared in
            guard shared.state.opened(number) else { return false }
            shared.open = watch
            return true
        }
        if isWanted { return }
        watch.close()
        forget()
    }

    /// Held by a stream: who lets go of it listens no more.
    private final class Listener: Sendable {
        private let watch: StatusWatch
        init(_ watch: StatusWatch) { self.watch = watch }
        deinit { watch.perform { $0.left() } }
    }
}
