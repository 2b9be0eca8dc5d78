/// What a view was told, in order, and a wait for more.
@MainActor
final class Log<Event: Sendable> {
    private(set) var events: [Event] = []
    private var waiters: [(isMet: @MainActor ([Event]) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

    func append(_ event: Event) {
        events.append(event)
        let met = waiters.filter { $0.isMet(events) }
        waiters.removeAll { $0.isMet(events) }
        for waiter in met { waiter.continuation.resume() }
    }

    func removeAll() { events = [] }

    func wait(until isMet: @escaping @MainActor ([Event]) -> Bool) async {
        if isMet(events) { return }
        await withCheckedContinuation { waiters.append((isMet, $0)) }
    }

    func wait(for count: Int) async { await wait { $0.count >= count } }
}

/// Lets others run until a condition holds. The suite's time limit ends a wait in vain.
@MainActor
func eventually(_ isMet: @MainActor () -> Bool) async {
    while !isMet() { await Task.yield() }
}

/// Lets whatever is on its way to the main actor arrive.
@MainActor
func settle() async {
    for _ in 0..<200 { await Task.yield() }
}
