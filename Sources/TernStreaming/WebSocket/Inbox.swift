import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The bytes and messages that a socket has received and nobody has read. Owned by the socket's actor.
struct Inbox {
    /// The next step with the received bytes.
    enum Step {
        case event(MessageAssembler.Event)
        case needsInput
        /// Unread messages leave no room. The waiter is resumed when there is some.
        case isFull(Waiter<Void>)
    }

    private static let maximumCount = 4_096

    private let maximumBytes: Int
    private var assembler: MessageAssembler
    /// The bytes that were received and not processed: the chunks from `index` on, the first one from `position` on.
    private var chunks: [Data] = []
    private var index = 0
    private var position = 0
    private var messages = FIFO<WebSocket.Message>()
    private var unreadBytes = 0
    /// Whether a reader has taken a message and has not asked for the next one.
    private var isBeingHandled = false
    /// The callers that wait for a message.
    var readers = WaiterList()
    /// Wakes the processing when the connection is to end, although messages are unread.
    let signal = RoomSignal()

    init(_ options: WebSocket.Options, _ agreement: PerMessageDeflate?) {
        maximumBytes = max(1, options.receiveBufferSize)
        let inflater = agreement.flatMap {
            MessageInflater(windowBits: $0.serverMaxWindowBits, resets: $0.serverNoContextTakeover)
        }
        assembler = MessageAssembler(
            maximumFrameSize: options.maximumFrameSize, maximumMessageSize: options.maximumMessageSize,
            inflater: inflater)
    }

    /// Whether unread messages stop the socket.
    var isHeldUp: Bool { signal.isWaiting }

    /// Whether readers have handled all messages so far.
    var isHandled: Bool { messages.isEmpty && !isBeingHandled }

    private var isFull: Bool { unreadBytes >= maximumBytes || messages.count >= Self.maximumCount }

    /// Adds bytes. All earlier ones were processed.
    mutating func add(_ chunks: [Data]) {
        self.chunks = chunks
        index = 0
        position = 0
    }

    /// Returns the next event of the bytes.
    mutating func next() -> Step {
        while index < chunks.count {
            if isFull, let waiter = signal.wait() { return .isFull(waiter) }
            let event = unsafe chunks[index].withUnsafeBytes { unsafe assembler.next($0, from: &position) }
            if let event { return .event(event) }
            index += 1
            position = 0
        }
        chunks = []
        return .needsInput
    }

    /// Drops the bytes that were not processed.
    mutating func dropInput() {
        chunks = []
        index = 0
    }

    /// Stores a message for its reader. One beyond the limit is dropped.
    mutating func store(_ message: WebSocket.Message) {
        if isFull { return }
        unreadBytes += message.byteCount
        messages.append(message)
        wakeReaders()
    }

    /// Removes and returns the oldest message.
    mutating func take() -> WebSocket.Message? {
        isBeingHandled = !messages.isEmpty
        guard let message = messages.popFirst() else { return nil }
        unreadBytes -= message.byteCount
        if signal.isWaiting, !isFull { signal.resume() }
        return message
    }

    mutating func wakeReaders() {
        for waiter in readers.removeAll() { waiter.resume() }
    }

    /// Drops the unread messages.
    mutating func clear() {
        messages = FIFO()
        unreadBytes = 0
    }
}

/// The wait of a socket's processing for room. A cancellation of the task ends it from any thread.
final class RoomSignal: Sendable {
    private struct State {
        var isOpen = false
        var waiter: Waiter<Void>?
    }

    private let state = Lock(State())

    /// Whether the processing waits.
    var isWaiting: Bool { state.withLock { $0.waiter != nil } }

    /// Returns a waiter for room; nil if nothing waits any more.
    func wait() -> Waiter<Void>? {
        state.withLock { state in
            if state.isOpen { return nil }
            let waiter = Waiter<Void>()
            state.waiter = waiter
            return waiter
        }
    }

    /// Resumes the processing.
    func resume() {
        let waiter = state.withLock { $0.waiter.take() }
        waiter?.resume()
    }

    /// Resumes the processing, and lets it wait no more.
    func open() {
        let waiter = state.withLock { state in
            state.isOpen = true
            return state.waiter.take()
        }
        waiter?.resume()
    }
}
