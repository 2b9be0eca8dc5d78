#if os(Linux) && !TERN_URLSESSION
import Tern
import TernConcurrency

/// The record of both sides about each request of the chaos tests, and the judgement of it.
final class ChaosLedger: Sendable {
    enum Outcome: Sendable {
        case success
        case failure(NetworkError.Kind, reason: String)
    }

    /// How the server answers a request, and what this means for the client.
    struct Answer: Sendable {
        let name: String
        /// Whether the client may report success.
        let allowsSuccess: Bool
        /// Whether the client must report success if the whole response was sent.
        let requiresSuccess: Bool
        /// Whether the server has sent the whole response.
        var isSent = false
        /// Whether the server has stated that it did not process the request.
        var isRefused = false

        init(_ fault: ChaosFault, isHead: Bool) {
            name = fault.rawValue
            allowsSuccess = fault.allowsSuccess(isHead: isHead)
            requiresSuccess = fault.requiresSuccess
        }

        /// Creates an answer of `Tests/AioQUIC/peer.py`, which does not learn whether its datagrams arrive.
        init(ofHTTP3 name: String, isHead: Bool) {
            self.name = name
            let wholeAnswers: Set = ["whole", "interims", "trickle", "trailers", "unknown", "goawayAfter", "shift"]
            let cutAnswers: Set = ["resetInBody", "closeInBody", "stallInBody"]
            allowsSuccess = wholeAnswers.contains(name) || isHead && cutAnswers.contains(name)
            requiresSuccess = false
        }

        init(_ fault: ChaosHTTP2Fault, isHead: Bool) {
            name = fault.rawValue
            allowsSuccess = fault.allowsSuccess(isHead: isHead)
            requiresSuccess = fault.requiresSuccess
        }
    }

    /// Identifies an answer of the server.
    struct AnswerID: Sendable {
        let number: Int
        let index: Int
    }

    private struct Entry {
        var method = ""
        var answers: [Answer] = []
        /// The number of times that the server received the whole body.
        var processed = 0
        var outcome: Outcome?
        var wasCancelled = false
        /// The answer that counts. One that refused the request and is noted later does not: a thread of the server can
        /// come to it after the client has sent the request again.
        var lastAnswer: Answer? { answers.last { !$0.isRefused } ?? answers.last }
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        var defects: [String] = []
        var table: [String: [String: Int]] = [:]
    }

    private let state = Lock(State())
    /// Whether the connections have TLS, whose handshake and records can fail.
    private let isSecure: Bool

    init(isSecure: Bool = false) { self.isSecure = isSecure }

    // MARK: The server's side

    /// Returns how often this request has been received.
    func receivedCount(of number: Int) -> Int { state.withLock { $0.entries[number]?.answers.count ?? 0 } }

    func noteReceived(_ number: Int, method: String, answer: Answer) -> AnswerID {
        state.withLock {
            $0.entries[number, default: Entry()].method = method
            $0.entries[number, default: Entry()].answers.append(answer)
            return AnswerID(number: number, index: ($0.entries[number]?.answers.count ?? 1) - 1)
        }
    }

    func noteProcessed(_ number: Int) { state.withLock { $0.entries[number]?.processed += 1 } }

    /// Notes that the whole response was sent, or that it can have been lost after all.
    func noteSent(_ id: AnswerID, _ isSent: Bool = true) { change(id) { $0.isSent = isSent } }

    /// Notes that the server has stated that it did not process the request.
    func noteRefused(_ id: AnswerID) { change(id) { $0.isRefused = true } }

    /// An answer to a request that was judged meanwhile no longer matters.
    private func change(_ id: AnswerID, _ change: (inout Answer) -> Void) {
        state.withLock { state in
            guard var entry = state.entries[id.number], entry.answers.indices.contains(id.index) else { return }
            change(&entry.answers[id.index])
            state.entries[id.number] = entry
        }
    }

    // MARK: The client's side

    func noteEnded(_ number: Int, method: String, with outcome: Outcome, wasCancelled: Bool) {
        state.withLock {
            $0.entries[number, default: Entry()].method = method
            $0.entries[number, default: Entry()].outcome = outcome
            $0.entries[number, default: Entry()].wasCancelled = wasCancelled
        }
    }

    func defect(_ text: String) { state.withLock { $0.defects.append(text) } }

    // MARK: The judgement

    /// Judges requests that have ended and forgets them. Returns all defects so far.
    func judge(_ numbers: Range<Int>) -> [String] {
        state.withLock { state in
            for number in numbers {
                let entry = state.entries[number] ?? Entry()
                state.defects += defects(of: entry).map { "request \(number) (\(entry.method)): \($0)" }
                let fault = entry.answers.last?.name ?? "(not received)"
                state.table[fault, default: [:]][Self.name(of: entry), default: 0] += 1
                if entry.answers.count > 1 {
                    let row = entry.answers[0].isRefused ? "(refused, sent again)" : "(sent again)"
                    state.table[row, default: [:]][Self.name(of: entry), default: 0] += 1
                }
            }
            state.entries = [:]
            return state.defects
        }
    }

    private static func name(of entry: Entry) -> String {
        switch entry.outcome {
        case .success: "success"
        case .failure(let kind, _): kind.rawValue
        case nil: "none"
        }
    }

    private func defects(of entry: Entry) -> [String] {
        var defects: [String] = []
        let last = entry.lastAnswer
        let isPost = entry.method == "POST"
        if entry.processed > (isPost ? 1 : 2) { defects.append("processed \(entry.processed) times") }
        let names = entry.answers.map(\.name).joined(separator: ", ")
        // Once more after a dead connection, and as often as the server has refused it.
        if entry.answers.count(where: { !$0.isRefused }) > (isPost ? 1 : 2) || entry.answers.count > 10 {
            defects.append("sent \(entry.answers.count) times (\(names))")
        }
        switch entry.outcome {
        case nil: defects.append("did not end")
        case .success:
            if last?.allowsSuccess != true { defects.append("succeeded after \(last?.name ?? "nothing")") }
        case .failure(let kind, let reason):
            if !permits(kind, entry) { defects.append("failed after \(names): \(kind.rawValue), \(reason)") }
        }
        return defects
    }

    private func permits(_ kind: NetworkError.Kind, _ entry: Entry) -> Bool {
        switch kind {
        // A busy machine can be slower than the limit.
        case .idleTimedOut: return true
        case .cancelled: return entry.wasCancelled
        case .connectionLost, .truncatedBody, .malformedResponse, .status, .tls, .connectionFailed:
            // Without TLS there is no handshake that fails.
            if kind == .tls || kind == .connectionFailed, !isSecure { return false }
            guard let last = entry.lastAnswer else { return true }
            return !(last.isSent && last.requiresSuccess)
        default: return false
        }
    }

    /// The number of requests that have succeeded.
    var successes: Int {
        // Rows in parentheses count requests once more.
        state.withLock { $0.table.reduce(0) { $0 + ($1.key.hasPrefix("(") ? 0 : $1.value["success"] ?? 0) } }
    }

    /// The number of requests by answer and outcome, as lines of a table.
    var summary: String {
        let table = state.withLock { $0.table }
        return table.keys.sorted().map { fault in
            let counts = table[fault, default: [:]].sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            return "  \(fault.padding(to: 22)) \(counts.joined(separator: ", "))"
        }.joined(separator: "\n")
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
#endif
