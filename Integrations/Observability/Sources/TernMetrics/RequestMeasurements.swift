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

/// Decides which servers have values of their own. Pure.
struct ServerLimit {
    let maximum: Int
    private var known: Set<RequestFacts.Server> = []

    init(maximum: Int) { self.maximum = max(0, maximum) }

    /// Returns the dimensions of a request.
    mutating func dimensions(of facts: RequestFacts) -> RequestDimensions {
        if known.contains(facts.server) || known.count < maximum {
            known.insert(facts.server)
            return RequestDimensions(method: facts.method, address: facts.server.address, port: "\(facts.server.port)")
        }
        return RequestDimensions(method: facts.method, address: "_OTHER", port: "")
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

    /// Keeps a meter, unless another thread has made the same one. Each value belongs to one handle.
    private func add(_ meter: Meter, for dimensions: RequestDimensions) -> Meter {
        handles.withLock { handles in
            let kept = handles.meters[dimensions] ?? meter
            handles.meters[dimensions] = kept
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
