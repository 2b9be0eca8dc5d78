import Tern
import TernImages
import TernViewModels

/// Shows an image on the lines of a terminal, and redraws it in place for previews and frames of an animation. It is a
/// view like any other: it implements how it shows an image, and loads one.
@MainActor
final class TerminalImageView: ImageViewModel {
    private static let hideCursor = "\u{1B}[?25l"
    /// Ends an interrupted sequence, and restores colours and cursor. The line is empty.
    private static let resetSequence = "\u{1B}\\\u{1B}[0m\u{1B}[?25h\r\u{1B}[K"

    let bindings = ViewBindings()
    private let painter: ImagePainter
    /// Whether the image can be redrawn; otherwise only the first final image is drawn.
    let isLive: Bool
    private let bar: TerminalBar
    private let alerts: any AlertViewModel
    private let write: @MainActor (String) throws -> Void
    /// The number of lines of the current image; nil without one.
    private var drawnRows: Int?
    /// The error of writing an image.
    private(set) var failure: (any Error)?

    /// Creates a view that writes through a closure.
    ///
    /// - Parameters:
    ///   - isLive: Whether the closure writes to a terminal.
    ///   - bar: The progress bar below the image while it loads.
    ///   - alerts: The object that reports failures.
    init(
        _ painter: ImagePainter, isLive: Bool, bar: TerminalBar, alerts: any AlertViewModel,
        write: @escaping @MainActor (String) throws -> Void
    ) {
        self.painter = painter
        self.isLive = isLive && painter.form.redraws && painter.layout.fitsWindow
        self.bar = bar
        self.alerts = alerts
        self.write = write
    }

    /// Restores the terminal.
    func finish() {
        guard isLive, drawnRows != nil else { return }
        output(Self.resetSequence)
    }

    // MARK: The view

    func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
        guard let image = update.image, failure == nil else { return }
        if !isLive {
            guard drawnRows == nil, case .success = update.phase else { return }
        }
        do {
            let (text, rows) = try painter.text(of: image, covering: drawnRows)
            // The cursor must be on an empty line.
            bar.clear()
            output(isLive && drawnRows == nil ? Self.hideCursor + text : text)
            drawnRows = rows
        } catch {
            stop(error)
        }
    }

    func imageSize(for slot: ImageSlot) -> PixelSize? { painter.layout.target }

    func imageLoadEnded(_ load: ImageLoad) {
        bar.unbindProgress()
        bar.clear()
        if case .failure(let error)? = load.result { alerts.showAlert(for: error) }
    }

    /// Writes in one call, because a partly drawn frame flickers.
    private func output(_ text: String) {
        do {
            try write(text)
        } catch {
            stop(error)
        }
    }

    /// Stops the load after a failure to write.
    private func stop(_ error: any Error) {
        failure = failure ?? error
        imagePlayback()?.player.stop()
        cancelImageLoad()
    }
}

/// Reports failures on standard error.
@MainActor
final class TerminalAlerts: AlertViewModel {
    let bindings = ViewBindings()
    private let terminal: Terminal
    /// Whether a failure was reported.
    private(set) var wasShown = false

    init(on terminal: Terminal) { self.terminal = terminal }

    /// Reports a failure that has no task.
    func showAlert(for error: NetworkError) {
        if let alert = alert(for: error) { showAlert(alert) }
    }

    func showAlert(_ alert: TaskAlert) {
        wasShown = true
        terminal.writeLine("tern: \(alert.title): \(alert.message)")
    }
}

/// Shows an image in a terminal, from its request to its last frame.
@MainActor
struct ImagePresentation {
    let view: TerminalImageView
    let bar: TerminalBar
    let interrupt: Interrupt

    /// Loads an image into the view with previews, and plays it to its end or to a signal. Returns the duration of the
    /// load.
    ///
    /// - Throws: The error of writing, or the `ImageError` of the load, which the view has already reported.
    func run(_ request: ImageRequest, loops: Int? = nil) async throws -> (ImageResponse, Duration) {
        defer {
            bar.clear()
            view.finish()
        }
        var request = request
        request.options.includesData = true
        var display = ImageDisplay()
        display.decodesToViewSize = true
        display.playback = nil
        if view.isLive {
            // Limits the previews to a rate that a terminal draws easily.
            request.options.progressive = ProgressivePolicy(
                minimumInterval: .milliseconds(150), showsRows: true, skipsWhenBehind: true)
            display.playback = PlaybackOptions(loopCount: loops)
        }
        let load = view.loadImage(from: request, display: display)
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
            // Follows the same frames as the view's own stream, which ends at the same time or a turn of the main actor
            // earlier.
            for await _ in player.frames {}
            await Task.yield()
        }
    }
}
