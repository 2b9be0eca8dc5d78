import GRPCCore
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The framed messages of a call, from its writers to the body of its request. A writer waits while 64 KiB wait.
final class Outbox: Sendable {
    private typealias Waiter = CheckedContinuation<Void, Never>

    private struct Shared {
        var state = OutboxState()
        /// The writers that wait for room, by number.
        var writers: [UInt64: Waiter] = [:]
        var lastWriter: UInt64 = 0
        /// The reader that waits, and its attempt.
        var reader: (attempt: Int, waiter: Waiter)?

        /// Removes those who can go on. They are resumed without the lock.
        mutating func takeReady() -> [Waiter] {
            var ready: [Waiter] = []
            if let waiting = reader, state.isReadable(by: waiting.attempt) {
                ready.append(waiting.waiter)
                reader = nil
            }
            if state.hasRoom, !writers.isEmpty {
                ready += writers.values
                writers = [:]
            }
            return ready
        }
    }

    private let shared = Mutex(Shared())

    private func change<Result: Sendable>(_ change: (inout OutboxState) -> Result) -> Result {
        let (result, ready) = shared.withLock { shared in
            let result = change(&shared.state)
            return (result, shared.takeReady())
        }
        for waiter in ready { waiter.resume() }
        return result
    }

    // MARK: The writers' side

    /// Adds a framed message, when there is room for one.
    ///
    /// - Throws: The reason why nothing is sent any more; `.cancelled` if the Swift task is cancelled meanwhile.
    func write(_ pieces: [Data]) async throws {
        while true {
            switch change({ $0.write(pieces) }) {
            case .written: return
            case .wait: try await waitForRoom()
            case .refused(let error): throw error
            }
        }
    }

    private func waitForRoom() async throws {
        let number = shared.withLock { shared in
            shared.lastWriter += 1
            return shared.lastWriter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let isReady = shared.withLock { shared in
                    if shared.state.hasRoom || Task.isCancelled { return true }
                    shared.writers[number] = waiter
                    return false
                }
                if isReady { waiter.resume() }
            }
        } onCancel: {
            shared.withLock { $0.writers.removeValue(forKey: number) }?.resume()
        }
        if Task.isCancelled {
            throw RPCError(code: .cancelled, message: "the call was cancelled while a message waited to be sent")
        }
    }

    /// Ends the messages.
    func end(_ ending: OutboxState.Ending) { change { $0.end(ending) } }

    /// The number of writers that wait for room.
    var waitingWriters: Int { shared.withLock { $0.writers.count } }

    // MARK: The call's side

    /// The server answers: nothing is sent again.
    func commit() { change { $0.commit() } }

    /// Begins another attempt. Returns false if a part of what was sent is gone.
    func restart() -> Bool { change { $0.restart() } != nil }

    /// Nothing is sent any more: writers that wait, and those that come, get the error.
    func close(_ error: any Error) { change { $0.close(error) } }

    /// The body of the present attempt.
    var body: Body { Body(outbox: self, attempt: shared.withLock { $0.state.attempt }) }

    /// The messages as the body of one attempt, which ends early when another begins.
    struct Body: AsyncSequence, Sendable {
        typealias Element = Data

        let outbox: Outbox
        let attempt: Int

        func makeAsyncIterator() -> Iterator { Iterator(outbox: outbox, attempt: attempt) }

        struct Iterator: AsyncIteratorProtocol {
            let outbox: Outbox
            let attempt: Int

            mutating func next() async throws -> Data? { try await outbox.next(for: attempt) }
        }
    }

    private func next(for attempt: Int) async throws -> Data? {
        while true {
            switch change({ $0.take(by: attempt) }) {
            case .bytes(let bytes): return bytes
            case .end: return nil
            case .failed(let error): throw error
            case .wait: await waitForMessage(attempt)
            }
            try Task.checkCancellation()
        }
    }

    private func waitForMessage(_ attempt: Int) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let isReady = shared.withLock { shared in
                    if shared.state.isReadable(by: attempt) || Task.isCancelled { return true }
                    shared.reader = (attempt, waiter)
                    return false
                }
                if isReady { waiter.resume() }
            }
        } onCancel: {
            let waiter = shared.withLock { shared in
                guard let waiting = shared.reader, waiting.attempt == attempt else { return nil as Waiter? }
                shared.reader = nil
                return waiting.waiter
            }
            waiter?.resume()
        }
    }
}
