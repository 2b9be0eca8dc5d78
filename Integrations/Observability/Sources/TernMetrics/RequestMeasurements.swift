import Metrics
import Synchronization
import Tern
import TernObservation

/// The dimensions of a server, with a bounded number of values.
struct ServerDimensions: Sendable, Hashable {
    let address: String
    let port: String
    /// nil if the dimension is left out.
    let scheme: String?

    var pairs: [(String, String)] {
        [("server.address", address), ("server.port", port)] + (scheme.map { [("url.scheme", $0)] } ?? [])
    }
}

/// The dimensions of a request, with a bounded number of values.
struct RequestDimensions: Sendable, Hashable {
    let method: String
    let server: ServerDimensions
    /// Empty without a template.
    let template: String

    var pairs: [(String, String)] {
        [("http.request.method", method)] + server.pairs + [("url.template", template)]
    }
}

/// The dimensions of the steps by which a connection was opened.
struct SetupDimensions: Sendable, Hashable {
    /// The name of the step.
    let step: String
    let server: ServerDimensions
    let version: String

    var label: String { "tern.client.connection.\(step).duration" }
    var pairs: [(String, String)] { server.pairs + [("network.protocol.version", version)] }
}

/// The dimensions of a request that has ended.
struct EndDimensions: Sendable, Hashable {
    let request: RequestDimensions
    let status: String
    let errorType: String
    let version: String

    init(_ request: RequestDimensions, _ end: AttemptEnd) {
        self.request = request
        version = (end.response?.version ?? end.metrics?.httpVersion)?.number ?? ""
        status = end.response.map { 100..<600 ~= $0.status ? "\($0.status)" : "_OTHER" } ?? ""
        errorType = end.response.map { $0.status >= 600 } == true ? "_OTHER" : end.errorType ?? ""
    }

    var pairs: [(String, String)] {
        request.pairs + [
            ("http.response.status_code", status), ("error.type", errorType), ("network.protocol.version", version),
        ]
    }
}

/// The dimensions of the open connections to a server.
struct ConnectionDimensions: Sendable, Hashable {
    /// The states of `http.connection.state`.
    enum State: String, Sendable, CaseIterable {
        case active, idle
    }

    let state: State
    let server: ServerDimensions

    var pairs: [(String, String)] { [("http.connection.state", state.rawValue)] + server.pairs }
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

/// Decides which servers and templates have values of their own. Pure.
struct DimensionLimit {
    /// The number of templates with values of their own.
    static let maximumTemplates = 100

    let maximumServers: Int
    /// Whether servers have a scheme.
    let hasScheme: Bool
    private var servers: Set<RequestFacts.Server> = []
    private var templates: Set<String> = []

    init(maximumServers: Int, hasScheme: Bool = false) {
        self.maximumServers = max(0, maximumServers)
        self.hasScheme = hasScheme
    }

    /// Returns the dimensions of a request.
    mutating func dimensions(of facts: RequestFacts) -> RequestDimensions {
        RequestDimensions(
            method: facts.method, server: dimensions(of: facts.server, scheme: facts.scheme),
            template: facts.template.map { template(of: $0) } ?? "")
    }

    /// Returns the dimensions of a server, or those that stand for all further servers.
    mutating func dimensions(of server: RequestFacts.Server, scheme: String) -> ServerDimensions {
        let scheme = hasScheme ? scheme : nil
        guard servers.contains(server) || servers.count < maximumServers else {
            return ServerDimensions(address: "_OTHER", port: "", scheme: scheme)
        }
        servers.insert(server)
        return ServerDimensions(address: server.address, port: "\(server.port)", scheme: scheme)
    }

    private mutating func template(of text: String) -> String {
        guard templates.contains(text) || templates.count < Self.maximumTemplates else { return "_OTHER" }
        templates.insert(text)
        return text
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
        var limit: DimensionLimit
        var timers: [EndDimensions: Metrics.Timer] = [:]
        var meters: [RequestDimensions: Meter] = [:]
        var connections: [ConnectionDimensions: Meter] = [:]
        var setups: [SetupDimensions: Metrics.Timer] = [:]
        var sizes: [SizeDimensions: Metrics.Recorder] = [:]
    }

    /// A message whose body has a size.
    private struct SizeDimensions: Hashable {
        let message: String
        let end: EndDimensions
    }

    private let factory: any MetricsFactory
    private let options: MetricsObserver.Options
    private let handles: Mutex<Handles>

    init(factory: any MetricsFactory, maximumServers: Int, options: MetricsObserver.Options) {
        self.factory = factory
        self.options = options
        let limit = DimensionLimit(maximumServers: maximumServers, hasScheme: options.hasScheme)
        handles = Mutex(Handles(limit: limit))
    }

    func taskStarted(_ task: AnySessionTask) {}

    func attemptStarted(_ request: Request, as start: AttemptStart, of task: Void) -> AttemptState {
        let facts = RequestFacts(request, knownMethods: options.knownMethods, isRedirected: start.isRedirected)
        let (dimensions, known) = handles.withLock { handles in
            let dimensions = handles.limit.dimensions(of: facts)
            return (dimensions, handles.meters[dimensions])
        }
        // A backend is not called with the lock held.
        let meter =
            known
            ?? keep(
                Meter(label: "http.client.active_requests", dimensions: dimensions.pairs, factory: factory),
                at: \.meters, for: dimensions)
        meter.increment()
        return AttemptState(dimensions: dimensions, active: meter)
    }

    func attemptEnded(_ attempt: AttemptState, as end: AttemptEnd) {
        attempt.active.decrement()
        let dimensions = EndDimensions(attempt.dimensions, end)
        let known = handles.withLock { $0.timers[dimensions] }
        let timer =
            known
            ?? keep(
                Metrics.Timer(
                    label: "http.client.request.duration", dimensions: dimensions.pairs,
                    preferredDisplayUnit: .seconds, factory: factory), at: \.timers, for: dimensions)
        timer.record(duration: end.duration)
        if options.metrics.contains(.bodySizes) {
            record(end.sentBodyBytes, of: SizeDimensions(message: "request", end: dimensions))
            record(end.receivedBodyBytes, of: SizeDimensions(message: "response", end: dimensions))
        }
        if options.metrics.contains(.connectionSetup), let metrics = end.metrics, !metrics.isReusedConnection {
            let steps = [("lookup", metrics.nameLookup), ("connect", metrics.connect), ("tls", metrics.tls)]
            for case (let step, let duration?) in steps {
                let setup = SetupDimensions(
                    step: step, server: attempt.dimensions.server, version: dimensions.version)
                record(duration, of: setup)
            }
        }
    }

    private func record(_ duration: Duration, of dimensions: SetupDimensions) {
        let timer =
            handles.withLock { $0.setups[dimensions] }
            ?? keep(
                Metrics.Timer(
                    label: dimensions.label, dimensions: dimensions.pairs, preferredDisplayUnit: .seconds,
                    factory: factory), at: \.setups, for: dimensions)
        timer.record(duration: duration)
    }

    private func record(_ bytes: Int64?, of dimensions: SizeDimensions) {
        guard let bytes else { return }
        let recorder =
            handles.withLock { $0.sizes[dimensions] }
            ?? keep(
                Metrics.Recorder(
                    label: "http.client.\(dimensions.message).body.size", dimensions: dimensions.end.pairs,
                    aggregate: true, factory: factory), at: \.sizes, for: dimensions)
        recorder.record(bytes)
    }

    func taskEnded(_ task: Void, as completion: TaskRegistry.Completion, attempts: Int) {}

    /// Records the changes of the open connections of one session since its last measurement. Changes, and no totals:
    /// those of several sessions add up, whatever the order in which their threads reach the backend.
    func measure(_ connections: [Session.OpenConnections], since counts: inout ConnectionCounts) {
        var current: [ConnectionDimensions: Int] = [:]
        handles.withLock { handles in
            for connection in connections {
                let server = handles.limit.dimensions(
                    of: RequestFacts.Server(url: connection.origin),
                    scheme: connection.origin.hasPrefix("https:") ? "https" : "http")
                for state in ConnectionDimensions.State.allCases {
                    let count = state == .active ? connection.activeCount : connection.idleCount
                    current[ConnectionDimensions(state: state, server: server), default: 0] += count
                }
            }
        }
        for (dimensions, change) in counts.replace(current) {
            let meter =
                handles.withLock { $0.connections[dimensions] }
                ?? keep(
                    Meter(label: "http.client.open_connections", dimensions: dimensions.pairs, factory: factory),
                    at: \.connections, for: dimensions)
            if change > 0 { meter.increment(by: Double(change)) }
            if change < 0 { meter.decrement(by: Double(-change)) }
        }
    }

    /// Keeps a handle, unless another thread has made the same one. Each value belongs to one handle.
    private func keep<Key: Hashable & Sendable, Handle: Sendable>(
        _ handle: Handle, at place: any WritableKeyPath<Handles, [Key: Handle]> & Sendable, for key: Key
    ) -> Handle {
        handles.withLock { handles in
            let kept = handles[keyPath: place][key] ?? handle
            handles[keyPath: place][key] = kept
            return kept
        }
    }
}
