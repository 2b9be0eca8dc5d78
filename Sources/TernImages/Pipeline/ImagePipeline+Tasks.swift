import Tern
import TernConcurrency

// The life of a load as the table decides it: who joins, leaves and moves, and what is told to whom.

extension ImagePipeline {
    func begin(_ task: ImageTask, _ stale: StoredImage?) {
        guard !task.isFinished else { return }
        let flight = ImageFlight(task.key, task.request)
        let number = nextNumber()
        switch images.join(flight, as: number, ticket: Int(task.id), rank: task.rank, .task(task)) {
        case .begin:
            loadOf[task.id] = number
            start(number, flight, task.request, stale, waitsForScrolling: task.request.options.waitsForScrolling)
        case .joined(let load, let rank):
            loadOf[task.id] = load
            if let rank { moved(load, to: rank) }
            if !task.request.options.waitsForScrolling { hurry(load) }
            catchUp(task, load)
        }
    }

    /// Tells who comes later what the others know.
    private func catchUp(_ task: ImageTask, _ load: Int) {
        if let progress = progress(of: load) { task.report(progress) }
        #if os(Linux)
        if let preview = previewers[load]?.shown { task.preview(preview) }
        #endif
        if let found = running[load]?.found, task.current == nil { finish(.task(task), .success(found), isLast: false) }
    }

    /// How far the fetch of a load was told to be.
    func progress(of load: Int) -> Session.Progress? {
        guard let known = running[load] else { return nil }
        switch known.upstream {
        case .image(let upstream, _)?, .original(let upstream, _)?: return progress(of: upstream)
        case nil: return known.progress
        }
    }

    func leave(_ task: ImageTask) {
        guard let load = loadOf.removeValue(forKey: task.id) else { return }
        left(images.leave(load, ticket: Int(task.id)), load)
    }

    func move(_ task: ImageTask) {
        guard let load = loadOf[task.id] else { return }
        if let rank = images.move(load, ticket: Int(task.id), to: task.rank) { moved(load, to: rank) }
    }

    func start(
        _ load: Int, _ flight: ImageFlight, _ request: ImageRequest, _ stale: StoredImage?, waitsForScrolling: Bool
    ) {
        running[load] = RunningLoad(
            job: Task { await self.run(load, flight, request, stale) }, waitsForScrolling: waitsForScrolling)
    }

    func left<Key, Target>(_ leaving: LoadTable<Key, Target>.Leaving, _ load: Int) {
        switch leaving {
        case .stays(let rank?): moved(load, to: rank)
        case .stays(nil), .unknown: break
        case .ends: drop(load)
        }
    }

    /// Nobody waits for the load any more: it leaves its queue, lets go of what it waits for, and is cancelled.
    private func drop(_ load: Int) {
        guard let dropped = running.removeValue(forKey: load) else { return }
        if let turn = dropped.turn { queues[turn.stage.rawValue].remove(load) }
        scrollGate.remove(load)
        scrollWaiters[load] = nil
        feeds[load] = nil
        #if os(Linux)
        endPreviews(of: load)
        #endif
        dropped.job?.cancel()
        leave(dropped.upstream)
    }

    func leave(_ upstream: RunningLoad.Upstream?) {
        switch upstream {
        case .image(let load, let ticket)?: left(images.leave(load, ticket: ticket), load)
        case .original(let load, let ticket)?: left(originals.leave(load, ticket: ticket), load)
        case nil: break
        }
    }

    /// The load's rank has changed: so does its place in the queue, and the rank of what it waits for.
    func moved(_ load: Int, to rank: LoadRank) {
        guard let moved = running[load] else { return }
        if let turn = moved.turn { queues[turn.stage.rawValue].move(load, to: rank) }
        switch moved.upstream {
        case .image(let upstream, let ticket)?:
            if let rank = images.move(upstream, ticket: ticket, to: rank) { self.moved(upstream, to: rank) }
        case .original(let upstream, let ticket)?:
            if let rank = originals.move(upstream, ticket: ticket, to: rank) { self.moved(upstream, to: rank) }
        case nil: break
        }
    }

    /// Without a copy of what it holds.
    func isRunning(_ load: Int) -> Bool { running.index(forKey: load) != nil }

    func rank(of load: Int) -> LoadRank { max(images.rank(of: load), originals.rank(of: load)) }

    // MARK: Telling

    func finish(_ sink: ImageSink, _ result: Result<LoadedImage, ImageError>, isLast: Bool = true) {
        switch sink {
        case .variant(let waiter, _):
            waiter.resume(returning: result)
        case .task(let task):
            if isLast { loadOf[task.id] = nil }
            tell(task, result, isLast: isLast)
        }
    }

    private func tell(_ task: ImageTask, _ result: Result<LoadedImage, ImageError>, isLast: Bool) {
        let known = task.shownPixels
        switch result {
        case .failure(let error):
            // What was delivered stays what it is.
            task.end(known == nil ? .failure(error.from(task.request.source.description)) : .success(nil))
        case .success(let loaded):
            if let refusal = loaded.stored.refusal(by: task.request.options) {
                // It waits no more, also if others do.
                leave(task)
                task.end(.failure(refusal.from(task.request.source.description)))
                return
            }
            // Given from memory already, and found there again.
            if isLast, known === loaded.stored.image.pixels {
                task.end(.success(nil))
                return
            }
            let isNew = loaded.source == .network || loaded.source == .revalidated
            let isStale = !isNew && !loaded.stored.freshness.isFresh(at: configuration.now())
            let response = loaded.stored.response(loaded.source, isStale: isStale, loaded.trace, task.request.options)
            if isLast { task.end(.success(response)) } else { task.deliver(response) }
        }
    }

    func report(_ progress: Session.Progress, of load: Int) {
        running[load]?.progress = progress
        for original in originals.targets(of: load) { tell(original.load) { $0.report(progress) } }
    }

    /// All tasks that wait for a picture, or for a variant of it.
    func tell(_ load: Int, _ message: (ImageTask) -> Void) {
        for sink in images.targets(of: load) {
            switch sink {
            case .task(let task): message(task)
            case .variant(_, let child): tell(child, message)
            }
        }
    }
}
