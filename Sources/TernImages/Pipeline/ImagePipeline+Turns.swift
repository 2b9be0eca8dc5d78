import TernConcurrency

// Waiting for a turn: at a stage, for the rate limit, and for scrolling to settle.

extension ImagePipeline {
    /// Runs the work when it is the load's turn at the stage.
    func inTurn<Value: Sendable>(
        _ stage: LoadStage, _ load: Int, _ rank: LoadRank,
        _ work: @Sendable () async throws(ImageError) -> Value
    ) async throws(ImageError) -> Value {
        try await enter(stage, load, rank)
        defer { leave(stage) }
        // It may have been cancelled after it was let in: nothing is begun for it then.
        if Task.isCancelled { throw .cancelled }
        return try await work()
    }

    private func enter(_ stage: LoadStage, _ load: Int, _ rank: LoadRank) async throws(ImageError) {
        if Task.isCancelled { throw .cancelled }
        let waiter = Waiter<Bool>()
        if stage == .fetch, bucket != nil {
            // The rate lets in whoever is first in line by then, not who was first to ask.
            queues[stage.rawValue].wait(load, rank)
            running[load]?.turn = (stage, waiter)
            admit(stage)
        } else {
            if queues[stage.rawValue].enter(load, rank) { return }
            running[load]?.turn = (stage, waiter)
        }
        let isMine = await waiter.wait(cancelled: false)
        running[load]?.turn = nil
        guard isMine else {
            queues[stage.rawValue].remove(load)
            throw .cancelled
        }
    }

    private func leave(_ stage: LoadStage) {
        queues[stage.rawValue].leave()
        admit(stage)
    }

    /// Lets in whoever is next, while there is room and the rate allows it.
    private func admit(_ stage: LoadStage) {
        while queues[stage.rawValue].hasNext {
            if stage == .fetch, let delay = bucket?.take(at: now), delay > .zero {
                admitLater(after: delay)
                return
            }
            guard let next = queues[stage.rawValue].next() else { return }
            if running[next]?.turn?.waiter.resume(returning: true) == true { continue }
            // One that is cancelled at this moment has gone already: its place is the next one's.
            queues[stage.rawValue].leave()
            if stage == .fetch { bucket?.giveBack() }
        }
    }

    /// One alarm serves all who wait for the rate. Nobody cancels it: with nobody left it does nothing.
    private func admitLater(after delay: Duration) {
        guard !isAwaitingRate else { return }
        isAwaitingRate = true
        let clock = configuration.clock
        Task { [weak self] in
            // An early end of the sleep would only look early.
            try? await clock.sleep(for: delay)
            await self?.rateAllows()
        }
    }

    private func rateAllows() {
        isAwaitingRate = false
        admit(.fetch)
    }

    // MARK: Scrolling

    func waitForScrolling(_ load: Int) async throws(ImageError) {
        guard running[load]?.waitsForScrolling == true, !scrollGate.enter(load) else { return }
        let waiter = Waiter<Bool>()
        scrollWaiters[load] = waiter
        guard await waiter.wait(cancelled: false) else {
            scrollGate.remove(load)
            scrollWaiters[load] = nil
            throw .cancelled
        }
    }

    /// Somebody has come who does not wait for scrolling: nor does what he waits for.
    func hurry(_ load: Int) {
        guard running[load]?.waitsForScrolling == true else { return }
        running[load]?.waitsForScrolling = false
        scrollGate.remove(load)
        scrollWaiters.removeValue(forKey: load)?.resume(returning: true)
        switch running[load]?.upstream {
        case .image(let upstream, _)?, .original(let upstream, _)?: hurry(upstream)
        case nil: break
        }
    }

    func scroll(_ action: ScrollGate.Action) {
        switch action {
        case .none: break
        case .settle(let turn):
            let (clock, time) = (configuration.clock, configuration.settlingTime)
            Task { [weak self] in
                // Nobody cancels it, and an early end of the sleep would only settle early.
                try? await clock.sleep(for: time)
                await self?.settled(turn)
            }
        case .open(let loads):
            for load in loads { scrollWaiters.removeValue(forKey: load)?.resume(returning: true) }
        }
    }

    private func settled(_ turn: Int) { scroll(scrollGate.settled(turn: turn)) }
}
