import Tern
import TernConcurrency
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Views that record their calls. Each comes in two kinds: with bindings in the table, and with bindings of its own.

@MainActor
class Bar: ProgressViewModel {
    let log = Log<ProgressUpdate>()
    let table: BindingTable

    init(in table: BindingTable = .shared) { self.table = table }

    var bindings: ViewBindings { ViewBindings(of: self, in: table) }
    var fractions: [Double?] { log.events.map(\.fraction) }

    func showProgress(_ progress: ProgressUpdate) { log.append(progress) }
}

@MainActor
final class StoredBar: ProgressViewModel {
    let log: Log<ProgressUpdate>
    let bindings = ViewBindings()

    init(_ log: Log<ProgressUpdate> = Log()) { self.log = log }

    func showProgress(_ progress: ProgressUpdate) { log.append(progress) }
}

@MainActor
final class Spinner: ActivityViewModel, RefreshViewModel {
    enum Event { case begin, end }

    let log = Log<Event>()
    let bindings = ViewBindings()
    private(set) var isActivityShown = false
    private(set) var isRefreshing = false

    func beginActivity() {
        isActivityShown = true
        log.append(.begin)
    }

    func endActivity() {
        isActivityShown = false
        log.append(.end)
    }

    func beginRefreshing() {
        isRefreshing = true
        log.append(.begin)
    }

    func endRefreshing() {
        isRefreshing = false
        log.append(.end)
    }

    /// Simulates the user.
    func pull() { isRefreshing = true }
    func spin() { isActivityShown = true }
}

/// A session whose responses have four chunks of 25 bytes, one each second of its clock. The response of `/fail` is
/// lost after the first second.
struct Slow {
    let clock = ManualClock()
    let session: Session

    init(hasLength: Bool = true) {
        let headers: Headers = hasLength ? ["Content-Length": "100"] : [:]
        let chunks = (0..<4).map { _ in Data(repeating: 1, count: 25) }
        let stub = StubTransport(clock: clock) { call in
            if call.path == "/fail" {
                let failure = StubTransport.Failure(.connectionLost)
                return StubTransport.Answer(steps: [.chunk(chunks[0]), .wait(.seconds(1)), .fail(failure)])
            }
            return .chunks(chunks, interval: .seconds(1), headers: headers)
        }
        session = Session(stub: stub)
    }

    func task(_ path: String = "/") throws -> SessionTask<Response<Data>> {
        session.task(for: try Request(.get, "https://a.example\(path)"))
    }

    /// Delivers the next chunk.
    func step() async throws {
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
    }

    func steps(_ count: Int) async throws {
        for _ in 0..<count { try await step() }
    }
}

/// Records the calls to a view in order, and waits for more.
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

    /// The time limit of the test also ends the wait.
    func wait(until isMet: @escaping @MainActor ([Event]) -> Bool) async {
        if isMet(events) { return }
        let waiter = Waiter<Bool>()
        waiters.append((isMet, waiter))
        if await !waiter.wait(cancelled: false) { Issue.record("waited in vain, with \(events)") }
    }

    func wait(for count: Int) async { await wait { $0.count >= count } }
}

/// Yields until a condition holds or the time limit of the test ends the wait.
@MainActor
func eventually(_ isMet: @MainActor () -> Bool) async {
    while !isMet(), !Task.isCancelled { await Task.yield() }
}

/// Yields until the work already submitted to the main actor has run.
@MainActor
func settle() async {
    for _ in 0..<200 { await Task.yield() }
}

/// SplitMix64: the same numbers for the same seed, on every machine.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: Int) { state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// The allocator's reuse of the addresses of released objects.
enum Addresses {
    private final class Something {}

    /// Whether an address is soon reused. The allocator of the address sanitizer avoids reuse on purpose.
    static let areUsedAgain: Bool = {
        var seen: Set<ObjectIdentifier> = []
        for _ in 0..<1_000 {
            let object = Something()
            if !seen.insert(ObjectIdentifier(object)).inserted { return true }
        }
        return false
    }()
}
