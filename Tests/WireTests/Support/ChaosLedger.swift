#if os(Linux) && !TERN_URLSESSION
import Tern
import TernConcurrency

/// The record of both sides about each request of the chaos tests, and the judgement of it.
final class ChaosLedger: Sendable {
    enum Outcome: Sendable {
        case success
        case failure(NetworkError.Kind, reason: String)
    }

    struct Answer: Sendable {
        var fault: ChaosFault
        /// A Boolean value that indicates whether the server has sent the whole response.
        var isSent = false
    }

    private struct Entry {
        var method = ""
        var answers: [Answer] = []
        /// The number of times that the server received the whole body.
        var processed = 0
        var outcome: Outcome?
        var wasCancelled = false
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        var defects: [String] = []
        var table: [String: [String: Int]] = [:]
    }

    private let state = Lock(State())

    // MARK: The server's side

    /// Returns how often this request has been received.
    func receivedCount(of number: Int) -> Int { state.withLock { $0.entries[number]?.answers.count ?? 0 } }

    func noteReceived(_ number: Int, method: String, answeredWith fault: ChaosFault) {
        state.withLock {
            $0.entries[number, default: Entry()].method = method
            $0.entries[number, default: Entry()].answers.append(Answer(fault: fault))
        }
    }

    func noteProcessed(_ number: Int) { state.withLock { $0.entries[number]?.processed += 1 } }

    func noteSent(_ number: Int) {
        state.withLock {
            guard let last = $0.entries[number]?.answers.indices.last else { return }
            $0.entries[number]?.answers[last].isSent = true
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
                state.defects += Self.defects(of: entry).map { "request \(number) (\(entry.method)): \($0)" }
                let fault = entry.answers.last?.fault.rawValue ?? "(not received)"
                state.table[fault, default: [:]][Self.name(of: entry), default: 0] += 1
                if entry.answers.count > 1 { state.table["(sent again)", default: [:]]["count", default: 0] += 1 }
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

    private static func defects(of entry: Entry) -> [String] {
        var defects: [String] = []
        let last = entry.answers.last
        let isPost = entry.method == "POST"
        if entry.processed > (isPost ? 1 : 2) { defects.append("processed \(entry.processed) times") }
        if entry.answers.count > (isPost ? 1 : 2) { defects.append("sent \(entry.answers.count) times") }
        switch entry.outcome {
        case nil: defects.append("did not end")
        case .success:
            if last?.fault.allowsSuccess(isHead: entry.method == "HEAD") != true {
                defects.append("succeeded after \(last.map(\.fault.rawValue) ?? "nothing")")
            }
        case .failure(let kind, let reason):
            switch kind {
            case .connectionLost, .truncatedBody, .malformedResponse, .status:
                if let last, last.isSent, last.fault.requiresSuccess {
                    defects.append("failed after \(last.fault.rawValue): \(kind.rawValue), \(reason)")
                }
            // A busy machine can be slower than the limit.
            case .idleTimedOut: break
            case .cancelled where entry.wasCancelled: break
            default: defects.append("failed with \(kind.rawValue): \(reason)")
            }
        }
        return defects
    }

    /// The number of requests by answer and outcome, as lines of a table.
    var summary: String {
        let table = state.withLock { $0.table }
        return table.keys.sorted().map { fault in
            let counts = table[fault, default: [:]].sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            return "  \(fault.padding(to: 18)) \(counts.joined(separator: ", "))"
        }.joined(separator: "\n")
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
#endif
