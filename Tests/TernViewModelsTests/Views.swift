import Tern
import TernTesting
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Views that write down what they were told. Each comes in two kinds: found in a table, and holding its own bindings.

@MainActor
class Bar: ProgressViewModel {
    let log = Log<ShownProgress>()
    let table: BindingTable

    init(in table: BindingTable = .shared) { self.table = table }

    var bindings: ViewBindings { ViewBindings(of: self, in: table) }
    var fractions: [Double?] { log.events.map(\.fraction) }

    func showProgress(_ progress: ShownProgress) { log.append(progress) }
}

@MainActor
final class StoredBar: ProgressViewModel {
    let log: Log<ShownProgress>
    let bindings = ViewBindings()

    init(_ log: Log<ShownProgress> = Log()) { self.log = log }

    func showProgress(_ progress: ShownProgress) { log.append(progress) }
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

    /// What a user does.
    func pull() { isRefreshing = true }
    func spin() { isActivityShown = true }
}

/// A session whose responses come in four chunks of 25 bytes, one each second of its clock; that of `/fail` is lost after
/// the first second.
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

    /// The next chunk comes.
    func step() async throws {
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
    }

    func steps(_ count: Int) async throws {
        for _ in 0..<count { try await step() }
    }
}
