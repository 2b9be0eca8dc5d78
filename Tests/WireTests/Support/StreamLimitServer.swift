#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc
import TernConcurrency
import Testing

/// A server over HTTP/2 without TLS on a port of 127.0.0.1 that limits the streams of a connection. It answers the
/// requests that have arrived together, with a status of 200, and refuses those above its limit.
final class StreamLimitServer: Sendable {
    struct Rules: Sendable {
        enum Settings: Sendable {
            case atOnce
            /// After `release()`.
            case held
            case never
        }

        /// The limit that the first SETTINGS state; nil for none.
        var stated: Int?
        /// The number of streams above which the server refuses; nil for the limit that it has stated last.
        var actual: Int?
        /// The time of the first SETTINGS.
        var settings = Settings.atOnce
        /// The limits of further SETTINGS, each sent after requests have arrived, and before they are counted.
        var changes: [Int] = []
        /// The limit of SETTINGS that follow the answer to the first ones.
        var afterAnswer: Int?
        /// Announces the end of the first connection after this number of streams, and processes no later ones.
        var streamsOfFirstConnection: Int?
        /// Refuses every stream until this time has passed since the first request.
        var refusesFor = Duration.zero
        /// Refuses the first stream before SETTINGS.
        var refusesBeforeSettings = false
    }

    struct Counts: Sendable {
        var connections = 0
        var requests = 0
        var refused = 0
        /// The largest number of streams that were open at the same time.
        var mostStreams = 0
        /// The number of requests that came before SETTINGS were sent.
        var early = 0
    }

    private struct State {
        var isListening = true
        var counts = Counts()
        var firstRequest: CheckedContinuation<Void, Never>?
        /// The time of the first request.
        var began: ContinuousClock.Instant?
    }

    let port: Int
    private let listener: Int32
    private let rules: Rules
    private let state = Lock(State())
    private let gate = DispatchSemaphore(value: 0)

    init(_ rules: Rules) throws {
        self.rules = rules
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        port = try LoopbackPort.bind(listener)
        try #require(listen(listener, 64) == 0)
        Thread.detachNewThread { self.accept() }
    }

    func stop() {
        // A descriptor that is closed can be another's by now.
        state.withLock { if $0.isListening { _ = shutdown(listener, Int32(SHUT_RDWR)) } }
    }

    var counts: Counts { state.withLock { $0.counts } }

    /// Lets the connections send their first SETTINGS.
    func release() { for _ in 0..<64 { gate.signal() } }

    /// Waits for the first request.
    func firstRequest() async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.counts.requests == 0 { state.firstRequest = continuation }
                return state.counts.requests > 0
            }
            if isThere { continuation.resume() }
        }
    }

    private func accept() {
        while case let descriptor = Glibc.accept(listener, nil, nil), descriptor >= 0 {
            let number = state.withLock { state in
                state.counts.connections += 1
                return state.counts.connections
            }
            Thread.detachNewThread {
                Connection(descriptor, number: number, server: self).serve()
                close(descriptor)
            }
        }
        state.withLock { state in
            state.isListening = false
            close(listener)
        }
    }

    private func note(_ change: (inout Counts) -> Void) {
        let waiter = state.withLock { state in
            change(&state.counts)
            if state.counts.requests > 0, state.began == nil { state.began = .now }
            return state.counts.requests > 0 ? state.firstRequest.take() : nil
        }
        waiter?.resume()
    }

    private var isOverloaded: Bool {
        state.withLock { $0.began.map { $0.duration(to: .now) < rules.refusesFor } ?? false }
    }

    /// A connection, on a thread of its own.
    private final class Connection {
        private let descriptor: Int32
        private let number: Int
        private let server: StreamLimitServer
        private var rules: Rules { server.rules }
        private var input: [UInt8] = []
        private var limit: Int
        private var changes: [Int]
        private var next: Int?
        private var hasSettings = false
        private var lastStream: Int32?
        /// The streams whose requests are not answered, and those of them that are whole.
        private var open: Set<Int32> = []
        private var whole: [Int32] = []

        init(_ descriptor: Int32, number: Int, server: StreamLimitServer) {
            self.descriptor = descriptor
            self.number = number
            self.server = server
            limit = server.rules.actual ?? server.rules.stated ?? .max
            changes = server.rules.changes
            next = server.rules.afterAnswer
        }

        func serve() {
            while input.count < 24 { guard read() else { return } }
            input.removeFirst(24)
            if case .atOnce = rules.settings, !rules.refusesBeforeSettings { announce(rules.stated) }
            while true {
                while hasMore(within: 0), read() {}
                takeFrames()
                answer()
                guard hasMore(within: 20_000), read() else { return }
            }
        }

        private func announce(_ limit: Int?) {
            hasSettings = true
            send(.settings(limit.map { [(.maximumStreams, $0)] } ?? []))
        }

        private func takeFrames() {
            var frames: [ChaosFrame] = []
            while let frame = ChaosFrame(from: &input) { frames.append(frame) }
            let requests = frames.count { $0.kind == .headers }
            if requests > 0 { begin(requests) }
            for frame in frames {
                switch frame.kind {
                case .headers: take(frame)
                case .reset: open.remove(frame.stream)
                case .settings where !frame.isAnswer: if hasSettings { send(.settingsAnswer) }
                case .settings: takeAnswer()
                case .ping where !frame.isAnswer: send(ChaosFrame(.ping, flags: 1, frame.payload))
                case .data where frame.payload.count > 0:
                    send(.window(0, frame.payload.count))
                default: break
                }
                if frame.kind == .headers || frame.kind == .data, frame.endsStream, open.contains(frame.stream) {
                    whole.append(frame.stream)
                }
            }
        }

        /// Sends what the rules want before the requests are counted.
        private func begin(_ requests: Int) {
            server.note { $0.requests += requests }
            if !hasSettings { server.note { $0.early += requests } }
            if rules.refusesBeforeSettings { return }
            if case .held = rules.settings, !hasSettings {
                server.gate.wait()
                while hasMore(within: 0), read() {}
                let late = early()
                server.note { $0.early += late }
                announce(rules.stated)
            }
            guard hasSettings, !changes.isEmpty else { return }
            let change = changes.removeFirst()
            announce(change)
            if rules.actual == nil { limit = change }
        }

        private func takeAnswer() {
            guard let next, hasSettings else { return }
            self.next = nil
            announce(next)
            limit = next
        }

        /// The number of requests that wait in the input.
        private func early() -> Int {
            var rest = input
            var count = 0
            while let frame = ChaosFrame(from: &rest) { if frame.kind == .headers { count += 1 } }
            return count
        }

        private func take(_ frame: ChaosFrame) {
            if let last = lastStream, frame.stream > last { return }
            let allowed = rules.streamsOfFirstConnection
            if number == 1, let allowed, Int(frame.stream) > 2 * allowed {
                lastStream = Int32(2 * allowed - 1)
                return send(.goAway(last: Int32(2 * allowed - 1), ChaosFrame.noError))
            }
            guard open.count < limit, !rules.refusesBeforeSettings, !server.isOverloaded else {
                server.note { $0.refused += 1 }
                return send(.reset(frame.stream, ChaosFrame.refusedStream))
            }
            open.insert(frame.stream)
            let count = open.count
            server.note { $0.mostStreams = max($0.mostStreams, count) }
        }

        private func answer() {
            guard hasSettings else { return }
            for stream in whole where open.remove(stream) != nil {
                send(.headers(stream, [(":status", "200")], isLast: true))
            }
            whole = []
        }

        private func hasMore(within milliseconds: Int32) -> Bool {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&entry, 1, milliseconds) == 1
        }

        private func read() -> Bool {
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
            if count > 0 { input += buffer[..<count] }
            return count > 0
        }

        private func send(_ frame: ChaosFrame) {
            let bytes = frame.bytes
            _ = unsafe Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }
    }
}
#endif
