import TernConcurrency

/// One stream's place in an animation. Only its stream calls it, one call at a time.
final class FrameReader: Sendable {
    private struct Place {
        var shown: Int?
        /// A frame that was decoded for its duration, and may be the next to show.
        var learned: (index: Int, frame: ImageFrame)?
        var hasLeft = false
    }

    private let player: AnimationPlayer
    private let reader: Int
    private let place = Lock(Place())

    init(_ player: AnimationPlayer) {
        self.player = player
        reader = player.image.store.join()
    }

    deinit { leave() }

    func next() async -> ImageFrame? {
        while !Task.isCancelled {
            do throws(ImageError) {
                switch player.step(shown: place.withLock { $0.shown }) {
                case .learn(let index, let isDue):
                    let begin = player.clock.now()
                    let frame = try await player.image.store.frame(
                        for: FrameDemands.Window(indices: [index]), of: reader)
                    player.learn(frame, at: index)
                    // Who is late skips frames. But a decoder that takes much of a frame's time would never be in time:
                    // what it gives is shown, late as it is.
                    let isSlow = player.clock.now() - begin >= frame.duration / 4
                    guard isDue, isSlow else {
                        place.withLock { $0.learned = (index, frame) }
                        continue
                    }
                    player.image.store.prepare(player.ahead(), of: reader)
                    place.withLock { $0.shown = index }
                    return frame
                case .show(let index, let ahead):
                    let frame = try await frame(index, ahead)
                    place.withLock { $0.shown = index }
                    player.learn(frame, at: index)
                    return frame
                case .wait(let waiter, let until):
                    await wait(waiter, until)
                case .end:
                    leave()
                    return nil
                }
            } catch {
                if error.kind != .cancelled { player.fail(error) }
            }
        }
        leave()
        return nil
    }

    /// The frame, and a word to the store about those that come after it.
    private func frame(_ index: Int, _ ahead: FrameDemands.Window) async throws(ImageError) -> ImageFrame {
        let learned = place.withLock { place in
            defer { place.learned = nil }
            return place.learned.flatMap { $0.index == index ? $0.frame : nil }
        }
        let store = player.image.store
        guard let learned else {
            var window = ahead
            window.indices.insert(index, at: 0)
            return try await store.frame(for: window, of: reader)
        }
        store.prepare(ahead, of: reader)
        return learned
    }

    private func wait(_ waiter: Waiter<Void>, _ until: Duration?) async {
        if let until {
            let clock = player.clock
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await clock.sleep(until) }
                group.addTask { await waiter.wait() }
                await group.next()
                group.cancelAll()
            }
        } else {
            await waiter.wait()
        }
        player.forget(waiter)
    }

    private func leave() {
        let isFirst = place.withLock { place in
            defer { place.hasLeft = true }
            return !place.hasLeft
        }
        if isFirst { player.image.store.leave(reader) }
    }
}
