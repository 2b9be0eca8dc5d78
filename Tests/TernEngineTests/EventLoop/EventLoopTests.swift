#if os(Linux)
import Glibc
import Synchronization
import TernConcurrency
import TernEngine
import Testing

/// The events that a client of a loop records.
private final class Log: Sendable {
    private let entries = Lock<[String]>([])
    private let signal: AsyncStream<Void>.Continuation
    private let events: AsyncStream<Void>

    init() { (events, signal) = AsyncStream.makeStream(of: Void.self) }

    func add(_ entry: String) {
        entries.withLock { $0.append(entry) }
        signal.yield()
    }

    /// Waits until there are this many entries.
    func entries(_ count: Int) async -> [String] {
        for await _ in events where entries.withLock({ $0.count }) >= count { break }
        return entries.withLock { $0 }
    }
}

private final class Word: Sendable {
    let text: String
    init(_ text: String) { self.text = text }
}

/// A client that records what reaches it.
private final class Client: LoopClient, TimerHandler, SocketHandler, TurnEndHandler, AnswerHandler {
    private let log: Log
    private let context: LoopContext
    private let id: UInt64
    private var timers: [(name: String, timer: LoopTimer)] = []
    private var registration: SocketRegistration?

    init(_ log: Log, _ context: LoopContext, _ id: UInt64) {
        self.log = log
        self.context = context
        self.id = id
    }

    func receive(operation: UInt64, object: any AnyObject & Sendable) {
        guard let word = object as? Word else { return }
        switch operation {
        // Much later, because the loop can have handled it in an earlier turn.
        case 1: schedule(word.text, after: 1_000_000_000)
        case 2: schedule(word.text, after: 1_000_000)
        case 3: watch(Int32(word.text) ?? -1)
        case 4: context.callAtTurnEnd(self)
        case 5:
            let expectation = context.expectAnswer(self)
            context.loop.post(answer: word.text, to: expectation)
        case 6:
            let expectation = context.expectAnswer(self)
            context.cancelAnswer(expectation)
            context.loop.post(answer: word.text, to: expectation)
        case 7: context.cancelBeforeSleep(schedule(word.text, after: 1_000_000))
        case 8:
            let timer = schedule(word.text, after: 2_000_000)
            context.cancelBeforeSleep(timer)
            timer.isNeeded = true
        default: log.add(word.text)
        }
    }

    @discardableResult
    private func schedule(_ name: String, after delay: UInt64) -> LoopTimer {
        let timer = LoopTimer(self)
        timers.append((name, timer))
        context.schedule(timer, at: context.now + delay)
        return timer
    }

    private func watch(_ descriptor: Int32) { registration = context.watch(descriptor, for: .readable, handler: self) }

    func timerFired(_ timer: LoopTimer) {
        if let name = timers.first(where: { $0.timer === timer })?.name { log.add(name) }
    }

    func socketIsReady(_ events: SocketEvents) {
        if events.contains(.readable) { log.add("readable") }
        if let registration { context.forget(registration) }
    }

    func turnEnds(isIdle: Bool) -> Bool {
        log.add("turn ends")
        return false
    }

    func receive(answer: any Sendable) { log.add("answer \(answer)") }

    func close() {
        log.add("closed")
        context.remove(id)
    }
}

@Suite(.timeLimit(.minutes(1))) struct EventLoopTests {
    private let log = Log()
    private let loop = EventLoop.shared

    private func open() -> UInt64 {
        loop.open { [log] context, id in Client(log, context, id) }
    }

    @Test func messagesArriveInTheirOrderUntilTheClientCloses() async {
        #expect(loop.problem() == nil)
        let client = open()
        for number in 0..<2_000 { loop.post(to: client, operation: 0, object: Word("\(number)")) }
        loop.close(client)
        loop.post(to: client, operation: 0, object: Word("late"))
        let other = open()
        loop.post(to: other, operation: 0, object: Word("other"))
        let entries = await log.entries(2_002)
        let isInOrder = entries == (0..<2_000).map { "\($0)" } + ["closed", "other"]
        #expect(isInOrder, "\(entries.count) entries, at last \(entries.suffix(3))")
    }

    @Test func timersFireInTheOrderOfTheirTimes() async {
        #expect(loop.problem() == nil)
        let client = open()
        loop.post(to: client, operation: 1, object: Word("late"))
        loop.post(to: client, operation: 2, object: Word("early"))
        #expect(await log.entries(2) == ["early", "late"])
    }

    @Test func aTimerThatNobodyNeedsIsCancelledBeforeTheSleep() async {
        #expect(loop.problem() == nil)
        let client = open()
        loop.post(to: client, operation: 8, object: Word("needed again"))
        loop.post(to: client, operation: 7, object: Word("not needed"))
        #expect(await log.entries(1) == ["needed again"])
    }

    @Test func aReadableSocketCallsItsHandler() async {
        #expect(loop.problem() == nil)
        var pair: [Int32] = [-1, -1]
        #expect(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        let client = open()
        loop.post(to: client, operation: 3, object: Word("\(pair[0])"))
        #expect(unsafe write(pair[1], "x", 1) == 1)
        #expect(await log.entries(1) == ["readable"])
        for descriptor in pair { close(descriptor) }
    }

    @Test func aTurnEndsAfterItsMessages() async {
        #expect(loop.problem() == nil)
        let client = open()
        loop.post(to: client, operation: 4, object: Word(""))
        #expect(await log.entries(1) == ["turn ends"])
    }

    /// All that a task sends in several steps leaves at once, and not after each. Where the system stops the loop for a
    /// while, the turn ends earlier, so it is tried again.
    @Test func aTaskOnTheLoopGoesOnBeforeTheTurnEnds() async {
        #expect(loop.problem() == nil)
        var entries: [String] = []
        for _ in 0..<100 where entries.last != "turn ends" {
            let log = Log()
            let client = loop.open { context, id in Client(log, context, id) }
            await withTaskExecutorPreference(loop.taskExecutor) { await goOn(client) }
            entries = await log.entries(11)
        }
        #expect(entries == (0..<10).map { "\($0)" } + ["turn ends"])
    }

    /// Computes for a time in nanoseconds before each step.
    @concurrent private func goOn(_ client: UInt64, for time: UInt64 = 0) async {
        loop.post(to: client, operation: 4, object: Word(""))
        for step in 0..<10 {
            await Task.yield()
            let end = MonotonicClock.nanoseconds() + time
            while MonotonicClock.nanoseconds() < end {}
            loop.post(to: client, operation: 0, object: Word("\(step)"))
        }
    }

    /// Sockets and timers do not wait for tasks that compute, even if these suspend in between.
    @Test func aTaskThatComputesDoesNotHoldUpTheTurn() async {
        #expect(loop.problem() == nil)
        let client = open()
        await withTaskExecutorPreference(loop.taskExecutor) { await goOn(client, for: 2_000_000) }
        let entries = await log.entries(11)
        #expect(entries.prefix(3).contains("turn ends"), "\(entries)")
    }

    @Test func anAnswerReachesItsHandlerUnlessItIsCancelled() async {
        #expect(loop.problem() == nil)
        let client = open()
        loop.post(to: client, operation: 6, object: Word("cancelled"))
        loop.post(to: client, operation: 5, object: Word("expected"))
        loop.post(to: client, operation: 5, object: Word("last"))
        #expect(await log.entries(2) == ["answer expected", "answer last"])
    }

    @Test func anActorRunsOnTheLoop() async {
        actor Counter {
            nonisolated let loop = EventLoop.shared
            nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }
            func isOnLoop() -> Bool { loop.isCurrent }
        }
        #expect(loop.problem() == nil)
        #expect(await Counter().isOnLoop())
    }
}
#endif
