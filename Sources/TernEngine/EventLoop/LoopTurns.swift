#if os(Linux)
import CTernLoop
import Glibc
import TernConcurrency

/// The turns of a loop: sockets → messages → timers → the ends of the turn → waiting tasks. An actor on the loop,
/// entered once per turn, which owns everything that is confined to the loop's thread.
///
/// Tasks that prefer the loop's executor continue within the turn, in rounds of several steps. Each step runs the jobs
/// that the step before has posted, and each round ends like the turn, which sends the bytes that the tasks wrote. So a
/// message is received and answered in one turn.
@safe actor LoopTurns {
    /// The maximum number of messages per turn, so that no turn delays the sockets.
    private static let messagesPerTurn = 1_024
    /// The maximum number of times that tasks on the loop continue in one turn.
    private static let roundsPerTurn = 4
    /// The maximum number of steps of a round.
    private static let stepsPerRound = 64
    /// The time in nanoseconds after which tasks no longer continue in a turn, so that sockets and timers are served.
    private static let timeOfTasks: UInt64 = 1_000_000

    private let loop: EventLoop
    private let context: LoopContext
    private var clients: [UInt64: any LoopClient] = [:]
    /// The client of the last message, which most often is that of the next one.
    private let lastClient = Confined<(id: UInt64, client: any LoopClient)?>(nil)
    /// Messages from the mailbox, and the number of those that are done.
    private var messages: [EventLoop.Message] = []
    private var messagesDone = 0
    /// The number of messages that may still be done in this turn.
    private var messagesLeft = 0
    /// The events that epoll reports. The loop is never freed, so the buffer is not freed either.
    private let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 256)
    private var eventCount = 0
    /// Whether tasks ran on the loop since it last slept.
    private var ranTasks = false
    private var polling = PollPolicy()
    private let processors = Confined(ProcessorLoad())

    init(_ loop: EventLoop) {
        self.loop = loop
        context = LoopContext(loop)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// Runs one turn and the sleep after it.
    func turnAndSleep() {
        sleep(atMost: turnOnce())
    }

    // MARK: Between turns

    /// Sleeps until a socket is ready, a message arrives or the time in milliseconds is over.
    private func sleep(atMost rest: Int32) {
        eventCount = 0
        // Tasks elsewhere run on threads that must be woken, too: a poll would only take the processor from them.
        let canPoll = ranTasks && context.awaitedResponses > 0
        ranTasks = false
        if canPoll, rest != 0, polling.isWorthwhile, poll() { return }
        let timeout = loop.prepareToSleep(rest)
        guard canPoll, timeout != 0 else {
            eventCount = wait(timeout)
            return
        }
        let start = MonotonicClock.nanoseconds()
        eventCount = wait(timeout)
        polling.slept(for: MonotonicClock.nanoseconds() - start)
    }

    /// Returns the number of events.
    private func wait(_ timeout: Int32) -> Int {
        Int(max(0, unsafe epoll_wait(loop.epoll, events.baseAddress, Int32(events.count), timeout)))
    }

    /// Looks for events and messages again and again for a short time. Returns whether there are any.
    private func poll() -> Bool {
        let start = MonotonicClock.nanoseconds()
        if processors.value.areBusy(now: start) { return false }
        var now = start
        while now - start < PollPolicy.limit {
            eventCount = wait(0)
            if eventCount > 0 || loop.hasMessages {
                polling.polled(found: true)
                return true
            }
            now = MonotonicClock.nanoseconds()
        }
        polling.polled(found: false)
        return false
    }

    // MARK: The turn

    /// Runs one turn. Returns the number of milliseconds until the next turn at the latest; −1 for no limit.
    private func turnOnce() -> Int32 {
        context.updateTime()
        let start = context.now
        var isIdle = serveSockets()
        messagesLeft = Self.messagesPerTurn
        takeMessages()
        context.fireTimers()
        isIdle = isIdle && messagesDone == messages.count
        var mustContinue = context.endTurn(isIdle: isIdle)
        // Tasks on the loop continue at once, and their requests go out in this turn.
        var rounds = 0
        while context.resumeTasks() || mayContinueTasks(since: start), rounds < Self.roundsPerTurn {
            rounds += 1
            var steps = 0
            repeat {
                steps += 1
                takeMessages()
                if ranTasks { context.updateTime() }
            } while steps < Self.stepsPerRound && mayContinueTasks(since: start)
            mustContinue = context.endTurn(isIdle: false)
        }
        removeClients()
        return mustContinue || messagesDone < messages.count ? 0 : millisecondsToSleep()
    }

    /// Returns whether tasks that ran on the loop have posted messages or jobs, as by a call of an actor, and have time
    /// left.
    private func mayContinueTasks(since start: UInt64) -> Bool {
        ranTasks && messagesLeft > 0 && context.now - start < Self.timeOfTasks
            && (messagesDone < messages.count || loop.hasMessages)
    }

    /// Returns whether no socket had an event.
    private func serveSockets() -> Bool {
        var isIdle = true
        for index in 0..<eventCount {
            let event = unsafe events[index]
            let data = unsafe event.data.u64
            if data == SocketTable.wakeup { continue }
            isIdle = false
            let start = loop.stepClock.begin()
            unsafe context.sockets.handler(for: data)?.socketIsReady(SocketEvents(rawValue: event.events))
            loop.stepClock.end(start)
        }
        return isIdle
    }

    private func takeMessages() {
        // Local while they are served: each access to a property of the actor is checked for overlaps at run time.
        var batch: [EventLoop.Message] = []
        swap(&batch, &messages)
        var done = messagesDone
        if done == batch.count {
            loop.takeMessages(&batch)
            // Most of the time: each turn looks for messages several times.
            if batch.isEmpty { return swap(&batch, &messages) }
            done = 0
        }
        let limit = min(batch.count, done + messagesLeft)
        messagesLeft -= limit - done
        while done < limit {
            // Taken out, so that no count changes.
            var message = EventLoop.Message.done
            swap(&message, &batch[done])
            let start = loop.stepClock.begin()
            receive(consume message)
            loop.stepClock.end(start)
            done += 1
        }
        if done == batch.count {
            batch.removeAll(keepingCapacity: done <= 4_096)
            done = 0
        }
        messagesDone = done
        swap(&batch, &messages)
    }

    private func receive(_ message: consuming EventLoop.Message) {
        switch consume message {
        case .client(let id, let operation, let object):
            client(id)?.receive(operation: operation, object: object)
        case .object(let object, let operation):
            object.perform(operation)
        case .open(let id, let make):
            clients[id] = make(context, id)
        case .close(let id):
            client(id)?.close()
        case .done:
            return
        case .answer(let expectation, let answer):
            context.receive(answer: answer, for: expectation)
        case .job(let job):
            unsafe job.runSynchronously(on: loop.asUnownedSerialExecutor())
        case .taskJob(let job):
            ranTasks = true
            unsafe job.runSynchronously(on: loop.taskExecutor.asUnownedTaskExecutor())
        }
    }

    private func client(_ id: UInt64) -> (any LoopClient)? {
        if !context.removedClients.value.isEmpty, context.removedClients.value.contains(id) { return nil }
        if let last = lastClient.value, last.id == id { return last.client }
        guard let client = clients[id] else { return nil }
        lastClient.value = (id, client)
        return client
    }

    private func removeClients() {
        if context.removedClients.value.isEmpty { return }
        for id in context.takeRemovedClients() { clients[id] = nil }
        lastClient.value = nil
    }

    private func millisecondsToSleep() -> Int32 {
        context.cancelUnneededTimer()
        let next = context.nextDeadline
        if next == .max { return -1 }
        if next <= context.now { return 0 }
        return Int32(clamping: (next - context.now + 999_999) / 1_000_000)
    }
}
#endif
