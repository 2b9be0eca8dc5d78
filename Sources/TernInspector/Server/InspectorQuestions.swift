import Dispatch
import Tern
import TernConcurrency

/// The questions of a page's viewers that only asynchronous code can answer. The threads of the server ask and wait,
/// and `Session.inspect(port:ready:)` answers one after the other.
final class InspectorQuestions: Sendable {
    enum Kind: Sendable {
        case connections
        case storedResponses(limit: Int)
    }

    enum Answer: Sendable {
        case connections([Session.OpenConnections])
        case storedResponses([StoredResponse])
        /// The page has ended.
        case none
    }

    struct Question: Sendable {
        let kind: Kind
        fileprivate let number: UInt64
    }

    /// The place of an answer, for a thread that may block.
    private final class Reply: Sendable {
        private let answer = Lock(Answer.none)
        private let signal = DispatchSemaphore(value: 0)

        func fill(_ new: Answer) {
            answer.withLock { $0 = new }
            signal.signal()
        }

        func wait() -> Answer {
            signal.wait()
            return answer.withLock { $0 }
        }
    }

    private struct State {
        var waiting: [UInt64: Reply] = [:]
        var lastNumber: UInt64 = 0
        var hasEnded = false
    }

    private let state = Lock(State())
    /// The questions in their order. Each thread of the server has one at most.
    let stream: AsyncStream<Question>
    private let continuation: AsyncStream<Question>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    /// Asks, and blocks until the answer is there or the page has ended.
    func ask(_ kind: Kind) -> Answer {
        let reply = Reply()
        let number = state.withLock { state -> UInt64? in
            guard !state.hasEnded else { return nil }
            state.lastNumber += 1
            state.waiting[state.lastNumber] = reply
            return state.lastNumber
        }
        guard let number else { return .none }
        continuation.yield(Question(kind: kind, number: number))
        return reply.wait()
    }

    func answer(_ question: Question, _ answer: Answer) {
        state.withLock { $0.waiting.removeValue(forKey: question.number) }?.fill(answer)
    }

    /// Ends the page: those who wait get no answer.
    func finish() {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            state.hasEnded = true
            return Array(state.waiting.values)
        }
        for reply in waiting { reply.fill(.none) }
        continuation.finish()
    }
}
