#if os(Linux)
import CTernLoop
import Glibc
import TernConcurrency

/// A part of the engine that lives on a loop and receives messages, such as the connections of one session. Confined to
/// the loop's thread.
package protocol LoopClient: AnyObject {
    /// Creates a client on the loop. The number is that of the client.
    typealias Make = @Sendable (_ context: LoopContext, _ client: UInt64) -> any LoopClient

    /// Receives a message that was posted to the client.
    func receive(operation: UInt64, object: any AnyObject & Sendable)
    /// Ends the client when its work is done: it then calls `LoopContext.remove(_:)`.
    func close()
}

/// An object that is called when its socket is ready. Confined to the loop's thread.
package protocol SocketHandler: AnyObject {
    func socketIsReady(_ events: SocketEvents)
}

/// An object that is called when a timer fires. Confined to the loop's thread.
package protocol TimerHandler: AnyObject {
    func timerFired(_ timer: LoopTimer)
}

/// An object that acts once at the end of a turn, after all sockets and messages of the turn. Confined to the loop's
/// thread.
package protocol TurnEndHandler: AnyObject {
    /// Acts at the end of a turn. With `isIdle`, no socket had an event in the turn and no message waits.
    ///
    /// Returns whether to be called at the end of the next turn, too.
    func turnEnds(isIdle: Bool) -> Bool
}

/// An object that expects an answer from another thread. Confined to the loop's thread.
package protocol AnswerHandler: AnyObject {
    func receive(answer: any Sendable)
}

/// The readiness of a socket.
package struct SocketEvents: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let readable = SocketEvents(rawValue: EPOLLIN.rawValue)
    package static let writable = SocketEvents(rawValue: EPOLLOUT.rawValue)
    /// The peer has closed its direction.
    package static let readEnded = SocketEvents(rawValue: EPOLLRDHUP.rawValue)
    /// The connection has failed or is closed. The system reports it whether it is asked for or not.
    package static let failed = SocketEvents(rawValue: EPOLLERR.rawValue | EPOLLHUP.rawValue)
}

/// A time at which its handler is called. Created once and scheduled any number of times.
package final class LoopTimer {
    /// The handler, which owns the timer.
    private unowned var handler: (any TimerHandler)?
    /// Whether the timer stays when the loop is about to sleep. See `LoopContext.cancelBeforeSleep(_:)`.
    package var isNeeded: Bool {
        get { isKept }
        set { isKept = newValue }
    }
    private var isKept = true
    /// The position in the queue; nil while the timer is not scheduled.
    fileprivate var token: TimerQueue.Token?
    /// The index among the timers of the loop.
    fileprivate var index = -1
    /// Whether the time has come, and the handler has not been called yet.
    fileprivate var isDue = false
    fileprivate var time = UInt64.max

    /// The time in nanoseconds; `.max` while the timer is not scheduled.
    package var deadline: UInt64 { time }

    package init(_ handler: any TimerHandler) { self.handler = handler }

    /// Creates a timer whose handler is set later, before the timer is scheduled.
    package init() {}

    /// Sets the handler of a timer that was created without one.
    package func setHandler(_ handler: any TimerHandler) { self.handler = handler }

    fileprivate func fire() { handler?.timerFired(self) }
}

/// The services of a loop for the objects that are confined to its thread.
///
/// Its stored properties are internal: each access to one that other modules can see is checked for overlaps at run
/// time, which showed in profiles.
@safe package final class LoopContext {
    /// A continuation of a task that waits for something that happens on the loop.
    package typealias Wake = UnsafeContinuation<Void, Never>

    /// The number of bytes of the buffer that all connections read into.
    package static let receiveCapacity = 256 << 10

    package let loop: EventLoop
    /// The time in nanoseconds, read once per turn.
    package var now: UInt64 { turnTime }
    private var turnTime = MonotonicClock.nanoseconds()
    /// The buffer that a connection reads into. Its contents are valid until the next connection reads.
    package let receiveBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: receiveCapacity, alignment: 64)
    /// The buffer that a connection fills with the head or the body of a request before it sends the bytes at once.
    package let sendBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: receiveCapacity, alignment: 64)
    let sockets: SocketTable
    private let queuePlace = Confined(TimerQueue())
    private var queue: TimerQueue {
        @inline(__always) _read { yield queuePlace.value }
        @inline(__always) _modify { yield &queuePlace.value }
    }
    /// The scheduled timers by their numbers in the queue, and the numbers that are free.
    private let timers = Confined<[LoopTimer?]>([])
    private let freeTimers = Confined<[Int]>([])
    private var expired: [UInt64] = []
    /// A timer that is cancelled before the loop sleeps, unless it is needed again.
    private let doubtfulTimer = Confined<LoopTimer?>(nil)
    private let wakes = unsafe Confined<[Wake]>([])
    private let turnEnds = Confined<[any TurnEndHandler]>([])
    /// The storage of the handlers that are being called, for the next turn.
    private let spareTurnEnds = Confined<[any TurnEndHandler]>([])
    private var expectations: [UInt64: any AnswerHandler] = [:]
    private var lastExpectation: UInt64 = 0
    /// The number of requests whose responses the clients of the loop wait for.
    private(set) var awaitedResponses = 0
    /// The clients that have ended in this turn.
    let removedClients = Confined<[UInt64]>([])

    init(_ loop: EventLoop) {
        self.loop = loop
        sockets = SocketTable(epoll: loop.epoll)
    }

    // Not freed: the loop is never freed.

    /// Reads the time.
    func updateTime() { turnTime = MonotonicClock.nanoseconds() }

    /// Changes the number of requests whose responses the clients of the loop wait for.
    package func awaitResponses(_ change: Int) { awaitedResponses += change }

    /// Resumes a task once the sockets of the turn are served: a task that runs at once on another thread then delays
    /// none of them, and a reader wakes once for everything that its attempt received.
    package func wake(_ waiting: Wake?) {
        if let waiting = unsafe waiting { unsafe wakes.value.append(waiting) }
    }

    /// Calls the handler at the end of this turn. The caller makes sure that it asks once.
    package func callAtTurnEnd(_ handler: any TurnEndHandler) { turnEnds.value.append(handler) }

    // MARK: Answers from other threads

    /// Expects one answer. Returns the number to which `EventLoop.post(answer:to:)` sends it.
    package func expectAnswer(_ handler: any AnswerHandler) -> UInt64 {
        lastExpectation += 1
        expectations[lastExpectation] = handler
        return lastExpectation
    }

    /// Expects the answer no longer.
    package func cancelAnswer(_ expectation: UInt64) { expectations[expectation] = nil }

    func receive(answer: any Sendable, for expectation: UInt64) {
        expectations.removeValue(forKey: expectation)?.receive(answer: answer)
    }

    // MARK: Sockets

    /// Watches a socket. Returns its registration for the functions below; nil with `errno` set if the system refuses.
    package func watch(
        _ descriptor: Int32, for events: SocketEvents, handler: any SocketHandler
    ) -> SocketRegistration? {
        sockets.add(descriptor, for: events, handler: handler)
    }

    /// Changes the events of a watched socket.
    package func change(_ registration: SocketRegistration, to events: SocketEvents) {
        sockets.change(registration, events)
    }

    /// Makes another object the handler of a watched socket.
    package func change(_ registration: SocketRegistration, handler: any SocketHandler) {
        sockets.change(registration, handler: handler)
    }

    /// Stops watching a socket. Call this before the descriptor is closed.
    package func forget(_ registration: SocketRegistration) { sockets.remove(registration) }

    // MARK: Timers

    /// Schedules the timer, in place of its earlier time. A deadline of `.max` cancels it.
    package func schedule(_ timer: LoopTimer, at deadline: UInt64) {
        guard deadline != .max else { return cancel(timer) }
        timer.time = deadline
        timer.isDue = false
        if let token = timer.token, queue.reschedule(token, at: deadline) { return }
        timer.index = freeTimers.value.popLast() ?? timers.value.count
        if timer.index == timers.value.count {
            timers.value.append(timer)
        } else {
            timers.value[timer.index] = timer
        }
        timer.token = queue.schedule(UInt64(timer.index), at: deadline)
    }

    /// Cancels the timer. Does nothing for one that is not scheduled.
    package func cancel(_ timer: LoopTimer) {
        timer.isDue = false
        guard let token = timer.token else { return }
        queue.cancel(token)
        remove(timer)
    }

    /// Cancels the timer when the loop is about to sleep, unless `LoopTimer.isNeeded` is set to true before. For a
    /// timer that is seldom without use for long: to cancel and to schedule it again costs a thousand instructions.
    package func cancelBeforeSleep(_ timer: LoopTimer) {
        guard timer.token != nil else { return }
        if let other = doubtfulTimer.value, other !== timer, !other.isNeeded { return cancel(timer) }
        doubtfulTimer.value = timer
        timer.isNeeded = false
    }

    /// Cancels the timer that nobody has needed again. Called when the loop is about to sleep.
    func cancelUnneededTimer() {
        guard let timer = doubtfulTimer.value else { return }
        doubtfulTimer.value = nil
        if !timer.isNeeded { cancel(timer) }
    }

    private func remove(_ timer: LoopTimer) {
        timers.value[timer.index] = nil
        freeTimers.value.append(timer.index)
        timer.token = nil
        timer.time = .max
    }

    /// Calls the handlers of the timers whose time has come.
    func fireTimers() {
        guard nextDeadline <= now else { return }
        queue.takeExpired(now: now, into: &expired)
        let due = expired.compactMap { timers.value[Int(truncatingIfNeeded: $0)] }
        expired.removeAll(keepingCapacity: true)
        for timer in due {
            remove(timer)
            timer.isDue = true
        }
        // A handler can cancel another timer, or schedule it again.
        for timer in due where timer.isDue {
            timer.isDue = false
            let start = loop.stepClock.begin()
            timer.fire()
            loop.stepClock.end(start)
        }
    }

    var nextDeadline: UInt64 { queue.nextDeadline ?? .max }

    // MARK: The end of a turn

    /// Returns whether a handler asks for another turn.
    func endTurn(isIdle: Bool) -> Bool {
        if turnEnds.value.isEmpty { return false }
        // Handlers that ask for a call meanwhile belong to the next turn.
        var handlers: [any TurnEndHandler] = []
        swap(&handlers, &spareTurnEnds.value)
        swap(&handlers, &turnEnds.value)
        for handler in handlers {
            let start = loop.stepClock.begin()
            if handler.turnEnds(isIdle: isIdle) { callAtTurnEnd(handler) }
            loop.stepClock.end(start)
        }
        handlers.removeAll(keepingCapacity: handlers.count <= 1_024)
        swap(&handlers, &spareTurnEnds.value)
        return !turnEnds.value.isEmpty
    }

    /// Removes a client at the end of the turn. It receives no message afterwards.
    package func remove(_ client: UInt64) { removedClients.value.append(client) }

    func takeRemovedClients() -> [UInt64] {
        defer { removedClients.value = [] }
        return removedClients.value
    }

    /// Returns whether a task was resumed.
    func resumeTasks() -> Bool {
        guard unsafe !wakes.value.isEmpty else { return false }
        for index in unsafe wakes.value.indices { unsafe wakes.value[index].resume() }
        unsafe wakes.value.removeAll(keepingCapacity: true)
        return true
    }
}
#endif
