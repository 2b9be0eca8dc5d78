/// When the network is watched: while somebody listens. Pure; each watch has a number of its own, so that what an older one
/// still says is not taken for the newer one's.
struct WatchState {
    private enum Phase: Equatable {
        case idle
        case opening(UInt64)
        case watching(UInt64)
        case ended
    }

    enum Action: Equatable {
        case nothing
        /// To be answered by `opened` or `failed` with this number.
        case open(UInt64)
        /// The open watch is not wanted any more.
        case close
    }

    private var phase = Phase.idle
    private var listeners = 0
    private var number: UInt64 = 0

    /// Whether a watch is open: what it told last is the status.
    var isWatching: Bool {
        if case .watching = phase { true } else { false }
    }

    /// Whether nobody listens, or nothing could be opened: what was told last need not be true any more.
    var isIdle: Bool { phase == .idle }

    /// One more listens. Where no watch could be opened before, it is tried again.
    mutating func joined() -> Action {
        listeners += 1
        guard phase == .idle else { return .nothing }
        number += 1
        phase = .opening(number)
        return .open(number)
    }

    /// One listens no more.
    mutating func left() -> Action {
        listeners -= 1
        return listeners == 0 ? leave(for: .idle) : .nothing
    }

    /// Nobody may listen any more.
    mutating func ended() -> Action { leave(for: .ended) }

    private mutating func leave(for next: Phase) -> Action {
        guard phase != .ended else { return .nothing }
        defer { phase = next }
        // One that is still being opened is closed by who opens it.
        return isWatching ? .close : .nothing
    }

    /// A watch is open. False when it is not wanted any more: then it is to be closed.
    mutating func opened(_ number: UInt64) -> Bool {
        guard phase == .opening(number) else { return false }
        phase = .watching(number)
        return true
    }

    /// A watch could not be opened.
    mutating func failed(_ number: UInt64) {
        if phase == .opening(number) { phase = .idle }
    }

    /// Whether what the watch of this number says is to be believed.
    func isCurrent(_ number: UInt64) -> Bool { phase == .opening(number) || phase == .watching(number) }
}
