#if os(Linux)
import TernConcurrency
import CTernCurl
import Glibc
import Synchronization

/// Runs transfers: takes what is posted to the loop, drives libcurl, and delivers the results. An actor on the loop,
/// entered once per turn.
@safe actor CurlEngine {
    /// The maximum number of starts per turn. Each start may open a connection, and no turn may delay the sockets.
    private static let startsPerTurn = 64
    private static let messagesPerTurn = 1_024

    private let loop: EventLoop
    private let turn = LoopTurn()
    private let sockets: SocketTable
    private var pools: [UInt64: CurlPool] = [:]
    /// The attempts under way, each at its transfer's `place`, and the places that are free.
    private var transfers: [CurlTransfer?] = []
    private var freePlaces: [Int] = []
    private var multis: [CurlMulti] = []
    /// Messages from the mailbox, and the number of those that are done.
    private var messages: [EventLoop.Message] = []
    private var messagesDone = 0
    private var flushing: [CurlTransfer] = []
    /// The events that epoll reports. The loop is never freed, so the buffer is not freed either.
    private let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 128)
    private var eventCount = 0

    init(_ loop: EventLoop) {
        self.loop = loop
        sockets = SocketTable(epoll: loop.epoll)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// Runs one turn and the sleep after it.
    func turnAndSleep() {
        let start = loop.measuresTurns ? tern_thread_user_microseconds() : nil
        let rest = turnOnce()
        if let start { loop.note(turn: tern_thread_user_microseconds() - start) }
        let timeout = loop.prepareToSleep(rest)
        let count = unsafe epoll_wait(loop.epoll, events.baseAddress, Int32(events.count), timeout)
        eventCount = Int(max(0, count))
    }

    /// Runs one turn: sockets → messages → timers → ended transfers → time limits → progress → readers. Returns the
    /// number of milliseconds until the next turn at the latest; −1 for no limit.
    private func turnOnce() -> Int32 {
        turn.now = MonotonicClock.nanoseconds()
        let isIdle = serveSockets()
        takeMessages()
        settlePauses()
        serveTimers()
        completeFinished()
        checkLimits()
        let hasUnflushed = flush(isIdle: isIdle && messagesDone == messages.count)
        turn.publishProgress()
        turn.resumeReaders()
        return hasUnflushed || messagesDone < messages.count ? 0 : millisecondsToSleep()
    }

    /// Returns whether no socket had an event.
    private func serveSockets() -> Bool {
        var isIdle = true
        for index in 0..<eventCount {
            let event = unsafe events[index]
            let descriptor = unsafe event.data.fd
            if loop.isWakeup(descriptor) { continue }
            isIdle = false
            if let (multi, mask) = sockets.fired(descriptor, unsafe event.events) { multi.serve(descriptor, mask) }
        }
        return isIdle
    }

    // MARK: Messages

    private func takeMessages() {
        if messagesDone == messages.count {
            messages.removeAll(keepingCapacity: messages.count <= 4_096)
            messagesDone = 0
            loop.takeMessages(&messages)
        }
        var starts = 0
        let limit = min(messages.count, messagesDone + Self.messagesPerTurn)
        while messagesDone < limit, starts < Self.startsPerTurn {
            let message = messages[messagesDone]
            messagesDone += 1
            switch message {
            case .start(let transfer, let pool):
                starts += 1
                start(transfer, pool)
            case .control(let transfer, let command):
                if let live = live(transfer) { control(live, command) }
            case .openPool(let id, let settings):
                pools[id] = CurlPool(settings, sockets: sockets, turn: turn)
            case .closePool(let id):
                if let pool = pools.removeValue(forKey: id) { close(pool) }
            case .job(let job):
                unsafe job.runSynchronously(on: loop.asUnownedSerialExecutor())
            }
        }
        if messagesDone == messages.count {
            messages.removeAll(keepingCapacity: true)
            messagesDone = 0
        }
    }

    private func start(_ transfer: Transfer, _ poolID: UInt64) {
        guard let pool = pools[poolID] else {
            unsafe turn.wake(transfer.complete(TransferOutcome(failure: .cancelled)))
            return
        }
        let started = CurlTransfer(transfer, pool: pool, turn: turn)
        keep(started)
        pool.liveCount += 1
        turn.watch(started.clock)
        submit(started)
    }

    private func keep(_ started: CurlTransfer) {
        if let place = freePlaces.popLast() {
            transfers[place] = started
            started.transfer.place.store(place, ordering: .relaxed)
        } else {
            started.transfer.place.store(transfers.count, ordering: .relaxed)
            transfers.append(started)
        }
    }

    private func live(_ transfer: Transfer) -> CurlTransfer? {
        let place = transfer.place.load(ordering: .relaxed)
        return place >= 0 ? transfers[place] : nil
    }

    private func control(_ transfer: CurlTransfer, _ command: TransferCommand) {
        switch command {
        case .cancel:
            end(transfer, .cancelled)
        case .pause:
            pause(transfer)
        case .resume:
            resume(transfer)
        case .demand:
            transfer.readerTookAll()
        case .bodyReady:
            transfer.sourceIsReady()
        case .prioritize(let priority):
            transfer.priority = priority
            transfer.pool.queue.prioritize(transfer.transfer.id, transfer.origin, priority: priority.rawValue)
        }
    }

    /// Takes a transfer that has sent nothing yet off the wire or out of the queue, because libcurl would still send
    /// its request.
    private func pause(_ transfer: CurlTransfer) {
        guard !transfer.isPaused else { return }
        transfer.setPaused(true)
        if transfer.isConnected { return }
        giveUpPlace(transfer)
        transfer.withdraw()
    }

    private func resume(_ transfer: CurlTransfer) {
        guard transfer.isPaused else { return }
        transfer.setPaused(false)
        if transfer.isConnected { return }
        submit(transfer)
    }

    private func settlePauses() {
        guard !turn.pausing.isEmpty else { return }
        for transfer in turn.pausing {
            transfer.settlePause()
            if let failure = transfer.takeFailureOfPause() { end(transfer, failure) }
        }
        turn.pausing.removeAll(keepingCapacity: true)
    }

    private func submit(_ transfer: CurlTransfer) {
        if transfer.pool.admits(transfer) { enter(transfer) }
    }

    // MARK: The wire

    private func enter(_ transfer: CurlTransfer) {
        let pool = transfer.pool
        let isOn = pool.enter(transfer)
        multis += pool.takeNewMultis()
        if !isOn {
            end(
                transfer,
                TransferFailure(.connectionFailed, "libcurl has no memory for the transfer, or refuses its proxy"))
        }
    }

    private func serveTimers() {
        for multi in multis where multi.deadline <= turn.now { multi.serveTimer() }
    }

    private func completeFinished() {
        for multi in multis where multi.mayHaveFinished {
            while let (transfer, result) = multi.nextFinished() {
                if transfer.mustStartOver {
                    startOver(transfer)
                } else {
                    end(transfer, transfer.failure(for: result))
                }
            }
        }
    }

    /// Starts an attempt again, after nothing of its request was sent. The attempt keeps its place on the wire.
    private func startOver(_ transfer: CurlTransfer) {
        transfer.pool.leave(transfer)
        transfer.withdraw()
        enter(transfer)
    }

    private func end(_ transfer: CurlTransfer, _ failure: TransferFailure?) {
        let place = transfer.transfer.place.exchange(-1, ordering: .relaxed)
        guard place >= 0 else { return }
        transfers[place] = nil
        freePlaces.append(place)
        let pool = transfer.pool
        pool.liveCount -= 1
        let wasOnWire = transfer.handle?.transfer != nil
        transfer.complete(failure)
        if let handle = transfer.handle {
            if wasOnWire { pool.leave(transfer) }
            transfer.handle = nil
            pool.recycle(handle)
        }
        if wasOnWire {
            release(transfer)
        } else {
            giveUpPlace(transfer)
        }
        if pool.isClosing, pool.liveCount == 0 { drop(pool) }
    }

    /// Gives up the attempt's place: on the wire, in the queue, or the one that it was given and has not taken yet.
    private func giveUpPlace(_ transfer: CurlTransfer) {
        let pool = transfer.pool
        if transfer.handle?.transfer != nil {
            pool.leave(transfer)
            release(transfer)
        } else if let index = pool.admitted.firstIndex(of: transfer.transfer.id) {
            pool.admitted.remove(at: index)
            pool.waiting[transfer.transfer.id] = nil
            release(transfer)
        } else {
            pool.withdraw(transfer)
        }
    }

    /// Frees a place on the wire.
    private func release(_ transfer: CurlTransfer) {
        transfer.pool.release(transfer)
        admitWaiting(transfer.pool)
    }

    private func admitWaiting(_ pool: CurlPool) {
        while !pool.admitted.isEmpty {
            // Transfers that paused or ended since they were admitted have given up their place.
            for id in pool.takeAdmitted() {
                if let waiting = pool.waiting.removeValue(forKey: id) { enter(waiting) }
            }
        }
    }

    private func close(_ pool: CurlPool) {
        pool.isClosing = true
        if pool.liveCount == 0 { drop(pool) }
    }

    private func drop(_ pool: CurlPool) {
        multis.removeAll { $0 === pool.shared || $0 === pool.exclusive }
        for multi in [pool.shared, pool.exclusive].compactMap(\.self) { sockets.forget(multi) }
    }

    // MARK: Time limits

    /// Ends the transfers that have reached a limit. Activity only moves a limit further away, so no transfer is
    /// checked before the earliest known limit. Then all are.
    private func checkLimits() {
        guard turn.nextDeadline <= turn.now else { return }
        turn.nextDeadline = .max
        for transfer in transfers {
            guard let transfer else { continue }
            if let phase = transfer.clock.expired(turn.now) {
                end(transfer, transfer.timeout(phase))
            } else {
                turn.watch(transfer.clock)
            }
        }
    }

    // MARK: The end of a turn

    /// Returns whether small pieces wait for more.
    private func flush(isIdle: Bool) -> Bool {
        guard !turn.changed.isEmpty else { return false }
        // Two lists take turns. Transfers that are marked during the flush belong to the next turn.
        swap(&turn.changed, &flushing)
        defer { flushing.removeAll(keepingCapacity: true) }
        var waiting = false
        for transfer in flushing where transfer.flush(isIdle: isIdle) {
            transfer.waitForMore()
            waiting = true
        }
        for pool in pools.values where !pool.admitted.isEmpty { admitWaiting(pool) }
        return waiting
    }

    private func millisecondsToSleep() -> Int32 {
        if freePlaces.count == transfers.count { turn.nextDeadline = .max }
        var next = min(turn.nextDeadline, turn.nextPublication)
        for multi in multis { next = min(next, multi.deadline) }
        if next == .max { return -1 }
        let now = turn.now
        if next <= now { return 0 }
        return Int32(clamping: (next - now + 999_999) / 1_000_000)
    }
}

extension CurlPool {
    fileprivate func takeAdmitted() -> [UInt64] {
        defer { admitted = [] }
        return admitted
    }
}
#endif
