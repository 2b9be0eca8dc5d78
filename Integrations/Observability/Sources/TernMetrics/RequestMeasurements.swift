import Metrics
import Synchronization
import Tern
import TernObservation

/// The dimensions of a request, with a bounded number of values.
struct RequestDimensions: Sendable, Hashable {
    let method: String
    let address: String
    let port: String

    var pairs: [(String, String)] {
        [("http.request.method", method), ("server.address", address), ("server.port", port)]
    }
}

/// The dimensions of a request that has ended.
struct EndDimensions: Sendable, Hashable {
    let request: RequestDimensions
    let status: String
    let errorType: String

    init(_ request: RequestDimensions, _ end: AttemptEnd) {
        self.request = request
        status = end.response.map { 100..<600 ~= $0.status ? "\($0.status)" : "_OTHER" } ?? ""
        errorType = end.response.map { $0.status >= 600 } == true ? "_OTHER" : end.errorType ?? ""
    }

    var pairs: [(String, String)] {
        request.pairs + [("http.response.status_code", status), ("error.type", errorType)]
    }
}

/// The dimensions of the open connections to a server.
struct ConnectionDimensions: Sendable, Hashable {
    /// The states of `http.connection.state`.
    enum State: String, Sendable, CaseIterable {
        case active, idle
    }

    let state: State
    let address: String
    let port: String

    var pairs: [(String, String)] {
        [("http.connection.state", state.rawValue), ("server.address", address), ("server.port", port)]
    }
}

/// The numbers of open connections of one session that were measured last. Pure.
struct ConnectionCounts {
    private var last: [ConnectionDimensions: Int] = [:]

    /// Replaces the numbers, and returns the changes. A server that is new has one in each state, also a change of 0,
    /// so that a backend knows the value.
    mutating func replace(_ counts: [ConnectionDimensions: Int]) -> [ConnectionDimensions: Int] {
        var changes: [ConnectionDimensions: Int] = [:]
        for (dimensions, count) in counts where last[dimensions] != count {
            changes[dimensions] = count - (last[dimensions] ?? 0)
        }
        for (dimensions, count) in last where counts[dimensions] == nil && count != 0 { changes[dimensions] = -count }
        last = counts
        return changes
    }
}

/// Decides which servers have values of their own. Pure.
struct ServerLimit {
    let maximum: Int
    private var known: Set<RequestFacts.Server> = []

    init(maximum: Int) { self.maximum = max(0, maximum) }

    /// Returns the dimensions of a request.
    mutating func dimensions(of facts: RequestFacts) -> RequestDimensions {
        let (address, port) = dimensions(of: facts.server)
        return RequestDimensions(method: facts.method, address: address, port: port)
    }

    /// Returns the address and the port of a server, or those that stand for all further servers.
    mutating func dimensions(of server: RequestFacts.Server) -> (address: String, port: String) {
        guard known.contains(server) || known.count < maximum else { return ("_OTHER", "") }
        known.insert(server)
        return (server.address, "\(server.port)")
    }
}

/// Measures requests on the wire.
final class RequestMeasurements: AttemptRecorder {
    struct AttemptState: Sendable {
        let dimensions: RequestDimensions
        let active: Meter
    }

    /// The handles of the metrics, because a backend looks each of them up by its dimensions. Their number is bounded.
    private struct Handles {
        var servers: ServerLimit
        var timers: [EndDimensions: Metrics.Timer] = [:]
        var meters: [RequestDimensions: Meter] = [:]
        var connections: [ConnectionDimensions: Meter] = [:]
    }

    private let factory: any MetricsFactory
    private let handles: Mutex<Handles>

    init(factory: any MetricsFactory, maximumServers: Int) {
        self.factory = factory
        handles = Mutex(Handles(servers: ServerLimit(maximum: maximumServers)))
    }

    func taskStarted(_ task: AnySessionTask) {}

    func attemptStarted(_ request: Request, number: Int, of task: Void) -> AttemptState {
        let facts = RequestFacts(request)
        let (dimensions, known) = handles.withLock { handles in
            let dimensions = handles.servers.dimensions(of: facts)
            return (dimensions, handles.meters[dimensions])
        }
        // A backend is not called with the lock held.
        let meter =
            known
            ?? add(
                Meter(label: "http.client.active_requests", dimensions: dimensions.pairs, factory: factory),
                for: dimensions)
        meter.increment()
        return AttemptState(dimensions: dimensions, active: meter)
    }

    func attemptEnded(_ attempt: AttemptState, as end: AttemptEnd) {
        attempt.active.decrement()
        let dimensions = EndDimensions(attempt.dimensions, end)
        let known = handles.withLock { $0.timers[dimensions] }
        let timer =
            known
            ?? add(
                Metrics.Timer(
                    label: "http.client.request.duration", dimensions: dimensions.pairs,
                    preferredDisplayUnit: .seconds, factory: factory), for: dimensions)
        timer.record(duration: end.duration)
    }

    func taskEnded(_ task: Void, as completion: TaskRegistry.Completion, attempts: Int) {}

    /// Records the changes of the open connections of one session since its last measurement. Changes, and no totals:
    /// those of several sessions add up, whatever the order in which their threads reach the backend.
    func measure(_ connections: [Session.OpenConnections], since counts: inout ConnectionCounts) {
        var current: [ConnectionDimensions: Int] = [:]
        handles.withLock { handles in
            for connection in connections {
                let (address, port) = handles.servers.dimensions(of: RequestFacts.Server(url: connection.origin))
                for state in ConnectionDimensions.State.allCases {
                    let count = state == .active ? connection.activeCount : connection.idleCount
                    current[ConnectionDimensions(state: state, address: address, port: port), default: 0] += count
                }
            }
        }
        for (dimensions, change) in counts.replace(current) {
            let meter =
                handles.withLock { $0.connections[dimensions] }
                ?? add(
                    Meter(label: "http.client.open_connections", dimensions: dimensions.pairs, factory: factory),
                    for: dimensions)
            if change > 0 { meter.increment(by: Double(change)) }
            if change < 0 { meter.decrement(by: Double(-change)) }
        }
    }

    /// Keeps a meter, unless another thread has made the same one. Each value belongs to one handle.
    private func add(_ meter: Meter, for dimensions: RequestDimensions) -> Meter {
        handles.withLock { handles in
            let kept = handles.meters[dimensions] ?? meter
            handles.meters[dimensions] = kept
            return kept
        }
    }

    private func add(_ meter: Meter, for dimensions: ConnectionDimensions) -> Meter {
        handles.withLock { handles in
            let kept = handles.connections[dimensions] ?? meter
            handles.connections[dimensions] = kept
            return kept
        }
    }

    private func add(_ timer: Metrics.Timer, for dimensions: EndDimensions) -> Metrics.Timer {
        handles.withLock { handles in
            let kept = handles.timers[dimensions] ?? timer
            handles.timers[dimensions] = kept
            return kept
        }
    }
}
