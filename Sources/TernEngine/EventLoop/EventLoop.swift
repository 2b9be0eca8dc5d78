#if os(Linux)
import CTernLoop
import Dispatch
import Glibc
import Synchronization
package import TernConcurrency

/// One thread that serves sockets. It has a mailbox and an epoll descriptor, and is the serial executor of actors on
/// the hot path. It is never freed, and sleeps without a time limit while nothing is under way.
///
/// If the process has no free descriptor, the loop is not set up yet: posted messages wait, and each request tries to
/// set the loop up and fails if that is not possible. Meanwhile, the actors run on a queue.
package final class EventLoop: MessageExecutor {
    /// A message that can be posted from any thread.
    enum Message: Sendable {
        case job(UnownedJob)
        /// A job of a task that prefers the loop.
        case taskJob(UnownedJob)
        /// A message to an object, in one order with the jobs.
        case object(any ExecutorMessage, operation: UInt64)
        /// A message to a client: a number and an object whose meaning only the client knows.
        case client(UInt64, operation: UInt64, object: any AnyObject & Sendable)
        /// Indirect, because every message is as large as the largest one, and the usual ones are moved several times
        /// per request.
        indirect case open(UInt64, make: LoopClient.Make)
        case close(UInt64)
        /// An answer that an object on the loop expects.
        indirect case answer(UInt64, any Sendable)
        /// The place of a message that was taken.
        case done
    }

    private struct Mailbox {
        var messages: [Message] = []
        var isAsleep = false
    }

    /// The first loop of the process.
    package static var shared: EventLoop { EventLoops.all[0] }
    private static let nextClient = Atomic<UInt64>(1)
    /// Whether this process was forked from the one that created the loops.
    private static let isForked = Atomic<Bool>(false)
    /// Notes a fork; evaluated once, when the first loop is created.
    private static let noteForks: Void = {
        // Used before the first fork, so that the handler initializes nothing.
        isForked.store(false, ordering: .relaxed)
        pthread_atfork(nil, nil) { EventLoop.isForked.store(true, ordering: .relaxed) }
    }()

    /// The epoll descriptor; −1 until the loop is set up. The wake-up descriptor below works in the same way.
    private let epollDescriptor = Atomic<Int32>(-1)
    private let wakeup = Atomic<Int32>(-1)
    /// Whether the loop is set up. Never returns to false.
    private let isReady = Atomic<Bool>(false)
    /// Held while the loop is set up, and while a job is put on the queue instead of the loop.
    private let setUp = Lock(())
    /// The queue on which jobs run before the loop is set up.
    private let queue = DispatchQueue(label: "tern.loop")
    private static let queueKey = DispatchSpecificKey<Int>()
    private let mailbox = Lock(Mailbox())
    private let thread = Atomic<UInt>(0)
    private let process = getpid()
    private let isEnding = Atomic<Bool>(false)
    private let hasStopped = Atomic<Bool>(false)
    package let stepClock = StepClock()

    /// The index of the loop in `EventLoops.all`.
    private let index: Int

    init(_ index: Int) {
        self.index = index
        queue.setSpecific(key: Self.queueKey, value: index)
        Self.noteForks
    }

    /// Runs tasks on the loop's thread.
    package var taskExecutor: LoopTaskExecutor { EventLoops.taskExecutors[index] }

    var epoll: Int32 { epollDescriptor.load(ordering: .relaxed) }

    /// Whether the loop takes messages now. It takes none before it is set up, after the process has begun to end, and
    /// in a forked process.
    package var isRunning: Bool {
        isReady.load(ordering: .acquiring) && !isEnding.load(ordering: .relaxed)
            && !Self.isForked.load(ordering: .relaxed)
    }

    /// Sets the loop up if necessary. Returns nil on success, and otherwise the reason why nothing can be sent now.
    package func problem() -> EngineError? {
        guard getpid() == process else {
            return EngineError(.connectionFailed, "a forked process has no event loop: start another program instead")
        }
        if isReady.load(ordering: .acquiring) { return nil }
        let code = setUp.withLock { _ in ready() }
        if code == 0 { return nil }
        let kind: EngineError.Kind = code == EMFILE || code == ENFILE ? .outOfDescriptors : .connectionFailed
        return EngineError(kind, "the event loop cannot be set up: \(SystemError(code).text)", code: code)
    }

    /// Sets the loop up, unless it is already. Returns 0 or the error number. Call it with the lock held.
    private func ready() -> Int32 {
        if isReady.load(ordering: .acquiring) { return 0 }
        let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { return errno }
        let wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard wakeup >= 0 else {
            defer { Glibc.close(epoll) }
            return errno
        }
        // Edge-triggered: a wake-up is noticed once, and its counter is never read.
        let events = EPOLLIN.rawValue | EPOLLET.rawValue
        var code = tern_loop_control(epoll, EPOLL_CTL_ADD, wakeup, events, SocketTable.wakeup)
        if code == 0 {
            epollDescriptor.store(epoll, ordering: .relaxed)
            self.wakeup.store(wakeup, ordering: .relaxed)
            code = startThread()
        }
        guard code == 0 else {
            Glibc.close(epoll)
            Glibc.close(wakeup)
            return code
        }
        isReady.store(true, ordering: .releasing)
        atexit { for loop in EventLoops.all { loop.stopForGood() } }
        return 0
    }

    /// Starts the thread. Returns 0 or the error number.
    private func startThread() -> Int32 {
        var handle = pthread_t()
        let context = unsafe Unmanaged.passRetained(self).toOpaque()
        let result = unsafe pthread_create(
            &handle, nil,
            { context in
                guard let context = unsafe context else { return nil }
                unsafe Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue().run()
            }, context)
        guard result == 0 else {
            unsafe Unmanaged<EventLoop>.fromOpaque(context).release()
            return result
        }
        pthread_detach(handle)
        return 0
    }

    /// Stops the loop at the process's end, so that it is not inside a library that is torn down next.
    private func stopForGood() {
        // A forked process has no loop.
        guard getpid() == process, isReady.load(ordering: .acquiring), !isCurrent else { return }
        // Each loop registers a call at the process's end.
        if isEnding.exchange(true, ordering: .sequentiallyConsistent) { return }
        interruptSleep()
        // The process does not wait longer for a loop in a system call, because a program must always be able to end.
        var turns = 0
        while !hasStopped.load(ordering: .acquiring), turns < 2_000 {
            usleep(50)
            turns += 1
        }
    }

    // MARK: Any thread

    /// Opens a client on the loop. Messages that are posted to the number afterwards reach it, until `close(_:)`.
    package func open(_ make: @escaping LoopClient.Make) -> UInt64 {
        let id = Self.nextClient.wrappingAdd(1, ordering: .relaxed).oldValue
        post(.open(id, make: make))
        return id
    }

    /// Sends a message to a client. Messages take effect in the order of their posting. Never blocks.
    package func post(to client: UInt64, operation: UInt64, object: any AnyObject & Sendable) {
        post(.client(client, operation: operation, object: object))
    }

    /// Closes a client, which ends when its work is done.
    package func close(_ client: UInt64) { post(.close(client)) }

    /// Sends an answer to the object on the loop that expects it. An answer that nobody expects any more is dropped.
    package func post(answer: any Sendable, to expectation: UInt64) { post(.answer(expectation, answer)) }

    package func post(_ message: any ExecutorMessage, operation: UInt64) {
        if Self.isForked.load(ordering: .relaxed) { return }
        if isReady.load(ordering: .acquiring) { return post(.object(message, operation: operation)) }
        setUpAndPost(.object(message, operation: operation)) { message.perform(operation) }
    }

    private func post(_ message: consuming Message) {
        // Nobody takes it, and a thread that does not exist here can have held the lock.
        if Self.isForked.load(ordering: .relaxed) { return }
        // Moved into the mailbox, so that no count changes.
        var moved: Message? = message
        let mustWake = mailbox.withLock { mailbox in
            if let message = moved.take() { mailbox.messages.append(message) }
            defer { mailbox.isAsleep = false }
            return mailbox.isAsleep
        }
        if mustWake { interruptSleep() }
    }

    private func interruptSleep() {
        var one: UInt64 = 1
        _ = unsafe Glibc.write(wakeup.load(ordering: .relaxed), &one, 8)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let executor = unsafe asUnownedSerialExecutor()
        let job = UnownedJob(job)
        if postJob(.job(job)) { return }
        setUpAndPost(.job(job)) { unsafe job.runSynchronously(on: executor) }
    }

    /// Posts a job if the loop is set up. Returns false if it is not.
    ///
    /// In a forked process, this ends the process: neither the loop's thread nor those of libdispatch exist there, so
    /// no other executor could take the job, and its task would wait forever.
    func postJob(_ message: Message) -> Bool {
        if Self.isForked.load(ordering: .relaxed) { Self.endForkedProcess() }
        guard isReady.load(ordering: .acquiring) else { return false }
        post(message)
        return true
    }

    /// Sets the loop up and posts a job, or runs it on the queue if that is not possible.
    func setUpAndPost(_ message: Message, orElse run: @escaping @Sendable () -> Void) {
        setUp.withLock { _ in
            if ready() == 0 { return post(message) }
            queue.async(execute: run)
        }
    }

    /// Ends the process with a message, by calls that a forked process may make (POSIX, fork).
    private static func endForkedProcess() -> Never {
        let reason: StaticString = "Tern cannot be used in a forked process: start another program with exec\n"
        _ = unsafe Glibc.write(STDERR_FILENO, reason.utf8Start, reason.utf8CodeUnitCount)
        abort()
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    package var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    package func checkIsolated() {
        precondition(isIsolating, "this must run on Tern's event loop")
    }

    package func isIsolatingCurrentContext() -> Bool? { isIsolating }

    /// Whether this is the loop's thread, or the queue before the loop is set up.
    private var isIsolating: Bool {
        isCurrent || !isReady.load(ordering: .acquiring) && DispatchQueue.getSpecific(key: Self.queueKey) == index
    }

    // MARK: The loop's thread

    private func run() -> Never {
        // Earlier jobs on the queue have ended, so two jobs never run at the same time.
        queue.sync {}
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        unsafe tern_loop_name_thread("tern-loop")
        tern_loop_keep_heap()
        let turns = LoopTurns(self)
        turns.assumeIsolated { turns in
            while !isEnding.load(ordering: .relaxed) { turns.turnAndSleep() }
        }
        hasStopped.store(true, ordering: .releasing)
        while true { pause() }
    }

    /// Returns the maximum number of milliseconds to sleep: 0 while messages wait, and otherwise `rest`, where −1 means
    /// no limit.
    func prepareToSleep(_ rest: Int32) -> Int32 {
        guard rest != 0 else { return 0 }
        return mailbox.withLock { mailbox in
            if !mailbox.messages.isEmpty { return 0 }
            mailbox.isAsleep = true
            return rest
        }
    }

    var hasMessages: Bool { mailbox.withLock { !$0.messages.isEmpty } }

    /// Takes all messages so far. The array is reused as the next mailbox.
    func takeMessages(_ recycled: inout [Message]) {
        mailbox.withLock { mailbox in
            mailbox.isAsleep = false
            swap(&mailbox.messages, &recycled)
        }
    }
}

#endif
