import TernConcurrency
import Testing

/// What a view was told, in order, and a wait for more.
@MainActor
final class Log<Event: Sendable> {
    private(set) var events: [Event] = []
    private var waiters: [(isMet: @MainActor ([Event]) -> Bool, waiter: Waiter<Bool>)] = []

    func append(_ event: Event) {
        events.append(event)
        let met = waiters.filter { $0.isMet(events) }
        waiters.removeAll { $0.isMet(events) }
        for waiter in met { waiter.waiter.resume(returning: true) }
    }

    func removeAll() { events = [] }

    /// Ends with the test's time limit, too.
    func wait(until isMet: @escaping @MainActor ([Event]) -> Bool) async {
        if isMet(events) { return }
        let waiter = Waiter<Bool>()
        waiters.append((isMet, waiter))
        if await !waiter.wait(cancelled: false) { Issue.record("waited in vain, with \(events)") }
    }

    func wait(for count: Int) async { await wait { $0.count >= count } }
}

/// Lets others run until a condition holds, or the test's time limit ends the wait.
@MainActor
func eventually(_ isMet: @MainActor () -> Bool) async {
    while !isMet(), !Task.isCancelled { await Task.yield() }
}

/// Lets whatever is on its way to the main actor arrive.
@MainActor
func settle() async {
    for _ in 0..<200 { await Task.yield() }
}
