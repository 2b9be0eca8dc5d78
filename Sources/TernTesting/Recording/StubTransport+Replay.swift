import Tern
import TernConcurrency

extension StubTransport {
    /// A stub that answers from a recording.
    ///
    /// A call is answered by the first exchange of the same method, URL and body that was not used yet; headers do not
    /// count. A call for which there is none fails with `.unsupported`, and says so.
    ///
    /// - Parameters:
    ///   - recording: What is played.
    ///   - repeatsLast: Whether the last exchange of its kind answers all further calls.
    ///   - redaction: What was taken out when it was recorded.
    ///   - clock: The clock of delays.
    public convenience init(
        replaying recording: Recording, repeatsLast: Bool = false, redaction: Recording.Redaction = .secrets,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        let replay = Lock(Replay(recording, repeatsLast: repeatsLast))
        self.init(clock: clock) { call in
            var asked = Recording.Exchange(call)
            redaction.change(&asked)
            let request = asked.request
            guard let exchange = replay.withLock({ $0.next(for: request) }) else {
                throw Failure(.unsupported, "the recording has no further answer for \(call.method) \(call.path)")
            }
            if let failure = exchange.failure {
                throw Failure(NetworkError.Kind(rawValue: failure.kind), failure.reason)
            }
            guard let response = exchange.response else {
                throw Failure(.unsupported, "the recording has neither response nor failure for \(call.path)")
            }
            return Answer(
                status: response.status, headers: Headers(recorded: response.headers),
                steps: response.body.map { [.chunk($0.data)] } ?? [])
        }
    }
}

/// Which exchange is next. Pure.
struct Replay {
    private struct Key: Hashable {
        let method: String
        let url: String
        let body: Recording.Content?
    }

    private var rest: [Key: ArraySlice<Recording.Exchange>]
    private let repeatsLast: Bool

    init(_ recording: Recording, repeatsLast: Bool) {
        rest = Dictionary(grouping: recording.exchanges) { Self.key($0.request) }.mapValues { $0[...] }
        self.repeatsLast = repeatsLast
    }

    mutating func next(for request: Recording.Sent) -> Recording.Exchange? {
        let key = Self.key(request)
        guard let exchanges = rest[key], let next = exchanges.first else { return nil }
        if exchanges.count > 1 || !repeatsLast { rest[key] = exchanges.dropFirst() }
        return next
    }

    private static func key(_ request: Recording.Sent) -> Key {
        Key(method: request.method, url: request.url, body: request.body)
    }
}
