#if os(Linux)
import CTernLoop
import Glibc
import TernConcurrency

/// The turns of a loop: sockets → messages → timers → the ends of the turn → waiting tasks. An actor on the loop, entered
/// once per turn, which owns everything that is confined to the loop's thread.
@safe actor LoopTurns {
    /// The maximum number of messages per turn, so that no turn delays the sockets.
    private static let messagesPerTurn = 1_024

    private let loop: EventLoop
    private let context: LoopContext
    private var clients: [UInt64: any LoopClient] = [:]
    /// The client of the last message, which most often is that of the next one.
    private var lastClient: (id: UInt64, client: any LoopClient)?
    /// Messages from the mailbox, and the number of those that are done.
    private var messages: [EventLoop.Message] = []
    private var messagesDone = 0
    /// The events that epoll reports. The loop is never freed, so the buffer is not freed either.
    private let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 256)
    private var eventCount = 0

    init(_ loop: EventLoop) {
        self.loop = loop
        context = LoopContext(loop)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// Runs one turn and the sleep after it.
    func turnAndSleep() {
        let start = loop.measuresTurns ? tern_loop_thread_user_microseconds() : nil
        let rest = turnOnce()
        if let start { loop.note(turn: tern_loop_thread_user_microseconds() - start) }
        let timeout = loop.prepareToSleep(rest)
        let count = unsafe epoll_wait(loop.epoll, events.baseAddress, Int32(events.count), timeout)
        eventCount = Int(max(0, count))
    }

    /// Runs one turn. Returns the number of milliseconds until the next turn at the latest; −1 for no limit.
    private func turnOnce() -> Int32 {
        context.now = MonotonicClock.nanoseconds()
        var isIdle = serveSockets()
        takeMessages()
        context.fireTimers()
        isIdle = isIdle && messagesDone == messages.count
        let mustContinue = context.endTurn(isIdle: isIdle)
        removeClients()
        context.resumeTasks()
        return mustContinue || messagesDone < messages.count ? 0 : millisecondsToSleep()
    }

    /// Returns whether no socket had an event.
    private func serveSockets() -> Bool {
        var isIdle = true
        for index in 0..<eventCount {
            let event = unsafe events[index]
            let data = unsafe event.data.u64
            if data == SocketTable.wakeup { continue }
            isIdle = false
            unsafe context.sockets.handler(for: data)?.socketIsReady(SocketEvents(rawValue: event.events))
        }
        return isIdle
    }

    private func takeMessages() {
        if messagesDone == messages.count {
            messages.removeAll(keepingCapacity: messages.count <= 4_096)
            messagesDone = 0
            loop.takeMessages(&messages)
        }
        let limit = min(messages.count, messagesDone + Self.messagesPerTurn)
        while messagesDone < limit {
            let message = messages[messagesDone]
            messagesDone += 1
            switch message {
            case .client(let id, let operation, let object):
                client(id)?.receive(operation: operation, object: object)
            case .open(let id, let make):
                clients[id] = make(context, id)
            case .close(let id):
                client(id)?.close()
            case .answer(let expectation, let answer):
                context.receive(answer: answer, for: expectation)
            case .job(let job):
                unsafe job.runSynchronously(on: loop.asUnownedSerialExecutor())
            }
        }
        if messagesDone == messages.count {
            messages.removeAll(keepingCapacity: true)
            messagesDone = 0
        }
    }

    private func client(_ id: UInt64) -> (any LoopClient)? {
        if !context.removedClients.isEmpty, context.removedClients.contains(id) { return nil }
        if let lastClient, lastClient.id == id { return lastClient.client }
        guard let client = clients[id] else { return nil }
        lastClient = (id, client)
        return client
    }

    private func removeClients() {
        if context.removedClients.isEmpty { return }
        for id in context.takeRemovedClients() { clients[id] = nil }
        lastClient = nil
    }

    private func millisecondsToSleep() -> Int32 {
        let next = context.nextDeadline
        if next == .max { return -1 }
        if next <= context.now { return 0 }
        return Int32(clamping: (next - context.now + 999_999) / 1_000_000)
    }
}
#endif
