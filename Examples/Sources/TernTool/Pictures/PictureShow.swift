import TernImages
import TernViewModels

/// A picture in a terminal from its request to its last frame.
@MainActor
struct PictureShow {
    let view: TerminalImageView
    let bar: TerminalBar
    let interrupt: Interrupt

    /// Loads a picture into the view, previews first, and plays it to its end, or to a signal. How long the loading took.
    ///
    /// Throws what the view could not write, and the load's `ImageError`, of which the view has told unless it was
    /// cancelled. The terminal is as it was.
    func run(_ request: ImageRequest, loops: Int? = nil) async throws -> (ImageResponse, Duration) {
        defer {
            bar.clear()
            view.finish()
        }
        var request = request
        request.options.includesData = true
        var display = ImageDisplay()
        display.fitsView = true
        display.playback = nil
        if view.isLive {
            // Not more often than a terminal draws with ease.
            request.options.progressive = ProgressivePolicy(
                minimumInterval: .milliseconds(150), showsRows: true, skipsWhenBehind: true)
            display.playback = PlaybackOptions(loopCount: loops)
        }
        let load = view.loadImage(request, display: display)
        if let task = load.task {
            bar.bindProgress(task.progress)
            interrupt.performs { task.cancel() }
        }
        let result: (ImageResponse, Duration)
        do {
            result = (try await load.value, bar.elapsed)
        } catch {
            throw view.failure ?? error
        }
        await play()
        if let failure = view.failure { throw failure }
        return result
    }

    private func play() async {
        while let player = view.imagePlayback()?.player {
            interrupt.performs { player.stop() }
            // In step with the view's own stream, which ends with this one, or a turn of the main actor later.
            for await _ in player.frames {}
            await Task.yield()
        }
    }
}
