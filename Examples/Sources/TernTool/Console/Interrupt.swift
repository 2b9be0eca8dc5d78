import Dispatch
import Synchronization
import Tern

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Ctrl-C, the polite way to end a process, and the end of its terminal: the first signal cancels what runs, so that it
/// can clean up; the second has its usual effect and ends the process at once.
final class Interrupt: Sendable {
    private struct State {
        var signal: Int32?
        var actions: [@Sendable () -> Void] = []
        var sources: [any DispatchSourceSignal] = []
    }

    /// What SIG_IGN is as a number: function pointers cannot be compared.
    private static let ignored = unsafe unsafeBitCast(SIG_IGN, to: Int.self)

    private let state = Mutex(State())

    /// Takes the signals over for the rest of the process; for a test none.
    init(_ signals: [Int32] = [SIGINT, SIGTERM, SIGHUP]) {
        // A queue of its own: the signal is served while the tool's own thread waits for a slow reader.
        let queue = DispatchQueue(label: "tern.interrupt")
        state.withLock { state in
            for number in signals {
                // Under `nohup` the terminal's end is nothing to heed.
                let earlier = unsafe unsafeBitCast(signal(number, SIG_IGN), to: Int.self)
                if number == SIGHUP, earlier == Self.ignored { continue }
                let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
                source.setEventHandler { [weak self] in
                    signal(number, SIG_DFL)
                    self?.receive(number)
                }
                source.activate()
                state.sources.append(source)
            }
        }
    }

    /// 128 and the signal's number, as shells expect it: 130 after Ctrl-C. nil if there was none.
    var exitCode: Int32? { state.withLock { $0.signal }.map { 128 + $0 } }

    /// Cancels a task at the signal, or now if it came already.
    func cancels(_ task: some TaskHandle) {
        let task = task.erased
        performs { task.cancel() }
    }

    /// Does something at the signal, or now if it came already.
    func performs(_ action: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            if state.signal == nil { state.actions.append(action) }
            return state.signal != nil
        }
        if isLate { action() }
    }

    private func receive(_ number: Int32) {
        let actions = state.withLock { state in
            state.signal = state.signal ?? number
            defer { state.actions = [] }
            return state.actions
        }
        for action in actions { action() }
    }
}
