import Tern
import TernImages
import TernViewModels

/// A picture on the lines of a terminal, drawn over in place as previews and frames of an animation come. A view like any
/// other: it says how it shows, and is loaded into.
@MainActor
final class TerminalImageView: ImageViewModel {
    private static let hideCursor = "\u{1B}[?25l"
    /// Ends a sequence that was cut off, and brings colours and cursor back. The line is clean.
    private static let calm = "\u{1B}\\\u{1B}[0m\u{1B}[?25h\r\u{1B}[K"

    let bindings = ViewBindings()
    private let painter: PicturePainter
    /// Whether what is drawn can be drawn over; if not, the first whole picture is the only one.
    let isLive: Bool
    private let bar: TerminalBar
    private let alerts: any AlertViewModel
    private let write: @MainActor (String) throws -> Void
    /// Lines of what is drawn; nil while nothing is.
    private var drawnRows: Int?
    /// Why a picture could not be written.
    private(set) var failure: (any Error)?

    /// A view that writes by a closure.
    ///
    /// - Parameters:
    ///   - isLive: Whether a terminal is at the end of the closure.
    ///   - bar: Stands below the picture while it is loaded.
    ///   - alerts: Who tells of a failure.
    init(
        _ painter: PicturePainter, isLive: Bool, bar: TerminalBar, alerts: any AlertViewModel,
        write: @escaping @MainActor (String) throws -> Void
    ) {
        self.painter = painter
        self.isLive = isLive && painter.form.redraws && painter.layout.fitsWindow
        self.bar = bar
        self.alerts = alerts
        self.write = write
    }

    /// Gives the terminal back as it was.
    func finish() {
        guard isLive, drawnRows != nil else { return }
        output(Self.calm)
    }

    // MARK: The view

    func showImage(_ shown: ShownImage, in slot: ImageSlot) {
        guard let image = shown.image, failure == nil else { return }
        if !isLive {
            guard drawnRows == nil, case .success = shown.phase else { return }
        }
        do {
            let (text, rows) = try painter.text(of: image, covering: drawnRows)
            // The cursor has to be on an empty line.
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

    /// In one write: a frame that is drawn by halves flickers.
    private func output(_ text: String) {
        do {
            try write(text)
        } catch {
            stop(error)
        }
    }

    /// Nobody sees what would still come.
    private func stop(_ error: any Error) {
        failure = failure ?? error
        imagePlayback()?.player.stop()
        cancelImageLoad()
    }
}

/// Failures on standard error.
@MainActor
final class TerminalAlerts: AlertViewModel {
    let bindings = ViewBindings()
    private let terminal: Terminal
    /// Whether something was told.
    private(set) var wasShown = false

    init(on terminal: Terminal) { self.terminal = terminal }

    /// Of what no task was made of.
    func showAlert(for error: NetworkError) {
        if let alert = alert(for: error) { showAlert(alert) }
    }

    func showAlert(_ alert: TaskAlert) {
        wasShown = true
        terminal.say("tern: \(alert.title): \(alert.message)")
    }
}
