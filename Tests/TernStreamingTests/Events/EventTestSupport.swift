import Tern
import TernConcurrency
import TernStreaming
import TernTesting
import Testing

/// Runs a server, and a client whose session is its own.
func withEventServer(
    _ handler: @escaping LoopbackServer.Handler, configure: (inout Session.Configuration) -> Void = { _ in },
    test: (LoopbackServer, Client) async throws -> Void
) async throws {
    let server = try LoopbackServer(handler: handler)
    defer { server.stop() }
    var configuration = Session.Configuration()
    configuration.proxies = .none
    configure(&configuration)
    try await test(server, Client(baseURL: server.url, session: Session(configuration: configuration)))
}

extension EventStreamOptions {
    /// Options for a test: with its clock, without time limits, and with the changes of the test.
    static func test(_ clock: any Clock<Duration>, _ change: (inout Self) -> Void = { _ in }) -> Self {
        var options = Self()
        options.clock = clock
        options.firstByteTimeout = nil
        options.silenceTimeout = nil
        change(&options)
        return options
    }
}

extension ServerSentEvents {
    /// Returns when the state satisfies a condition.
    func wait(for condition: (EventStreamState) -> Bool) async {
        for await state in states where condition(state) { return }
    }
}

extension EventStreamState {
    /// The case without its values.
    var name: String {
        switch self {
        case .connecting: "connecting"
        case .waitingForConnection: "waiting for a connection"
        case .open: "open"
        case .waiting(nil, _): "offline"
        case .waiting: "waiting"
        case .closed(.lastEvent): "last event"
        case .closed(.server): "ended"
        case .closed(.noContent): "no content"
        case .closed(.closed): "closed"
        case .closed(.failed): "failed"
        }
    }
}

/// Returns the error that an operation throws. Records an issue if it throws none.
func streamFailure<Value>(
    of operation: () async throws -> Value, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> NetworkError {
    do {
        _ = try await operation()
    } catch let error as NetworkError {
        return error
    }
    Issue.record("nothing failed", sourceLocation: sourceLocation)
    throw NothingThrown()
}

struct NothingThrown: Error {}

/// Collects the data of all events.
func allData(of events: some AsyncSequence<ServerSentEvent, NetworkError>) async throws -> [String] {
    var data: [String] = []
    for try await event in events { data.append(event.data) }
    return data
}

/// The status of a network that a test sets.
final class ScriptedNetwork: ReachabilitySource {
    private struct State {
        var status: Reachability.Status
        var watches: [@Sendable (Reachability.Status) -> Void] = []
    }

    private struct Watch: ReachabilityWatch {
        func close() {}
    }

    private let state: Lock<State>

    init(_ status: Reachability.Status) { state = Lock(State(status: status)) }

    var currentStatus: (@Sendable () -> Reachability.Status)? { { self.state.withLock { $0.status } } }

    func watch(_ onChange: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)? {
        let status = state.withLock { state in
            state.watches.append(onChange)
            return state.status
        }
        onChange(status)
        return Watch()
    }

    func set(_ status: Reachability.Status) {
        let watches = state.withLock { state in
            state.status = status
            return state.watches
        }
        for watch in watches { watch(status) }
    }
}
