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
        return try await work()
    }

    private func enter(_ stage: LoadStage, _ load: Int, _ rank: LoadRank) async throws(ImageError) {
        if Task.isCancelled { throw .cancelled }
        if queues[stage.rawValue].enter(load, rank) { return }
        let waiter = Waiter<Bool>()
        running[load]?.turn = (stage, waiter)
        let isMine = await waiter.wait(cancelled: false)
        running[load]?.turn = nil
        guard isMine else {
            queues[stage.rawValue].remove(load)
            throw .cancelled
        }
    }

    private func leave(_ stage: LoadStage) {
        queues[stage.rawValue].leave()
        while let next = queues[stage.rawValue].next() {
            // One that is cancelled at this moment has gone already: its place is the next one's.
            if running[next]?.turn?.waiter.resume(returning: true) != true { queues[stage.rawValue].leave() }
        }
    }

    // MARK: The rate limit

    func waitForRate() async throws(ImageError) {
        guard let delay = bucket?.take(at: now), delay > .zero else { return }
        do { try await configuration.clock.sleep(for: delay) } catch { throw .cancelled }
    }

    // MARK: Scrolling

    func waitForScrolling(_ load: Int) async throws(ImageError) {
        guard !scrollGate.enter(load) else { return }
        let waiter = Waiter<Bool>()
        scrollWaiters[load] = waiter
        guard await waiter.wait(cancelled: false) else {
            scrollGate.remove(load)
            scrollWaiters[load] = nil
            throw .cancelled
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
