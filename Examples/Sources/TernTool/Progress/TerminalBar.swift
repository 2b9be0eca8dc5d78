import Tern
import TernViewModels

/// Shows one transfer on standard error: a live bar in a terminal, plain lines elsewhere. It is a view like any other:
/// it implements how it shows progress, and is bound to a task.
@MainActor
final class TerminalBar: ProgressViewModel, ActivityViewModel {
    let bindings = ViewBindings()
    private nonisolated let start = ContinuousClock.now
    private let bar: Bar
    private let terminal: Terminal
    private var throttle: DisplayThrottle
    private var isDrawn = false
    /// The last status shown.
    private(set) var status = TransferStatus(completed: 0)
    private(set) var isActivityShown = false
    /// Finished with the last update.
    private let (ends, ending) = AsyncStream<Void>.makeStream()

    init(_ label: String, on terminal: Terminal) {
        bar = Bar(label: label)
        self.terminal = terminal
        throttle = DisplayThrottle(terminal.isInteractive ? .bar : .lines)
    }

    /// The time since the bar was created.
    nonisolated var elapsed: Duration { ContinuousClock.now - start }

    /// Binds the progress of a transfer, and its pauses.
    func bind(_ task: any TaskHandle, _ direction: ProgressUpdate.Direction = .download) {
        switch direction {
        case .download: bindDownloadProgress(of: task)
        case .upload: bindUploadProgress(of: task)
        }
        bindActivity(to: task)
    }

    /// Waits for the end of the transfer, and leaves an empty line.
    func finished() async {
        for await _ in ends {}
        unbindActivity(ending: true)
        clear()
    }

    /// Shows a transfer to its end, and leaves an empty line.
    func follow(_ task: any TaskHandle, _ direction: ProgressUpdate.Direction = .download) async {
        bind(task, direction)
        await finished()
    }

    /// Removes the bar, so that the next output begins on an empty line.
    func clear() {
        if isDrawn { terminal.redraw("") }
        isDrawn = false
    }

    // MARK: The view

    func showProgress(_ progress: ProgressUpdate) {
        status = TransferStatus(progress, note: status.note)
        draw()
        if progress.isFinished { ending.finish() }
    }

    func beginActivity() {
        isActivityShown = true
        note(nil)
    }

    /// Called at a pause, and at the end, which needs no note.
    func endActivity() {
        isActivityShown = false
        if activityBinding?.canResume ?? false { note("paused") }
    }

    private func note(_ note: String?) {
        guard note != status.note else { return }
        status.note = note
        draw()
    }

    /// Draws the status unless the throttle rejects it.
    private func draw() {
        guard terminal.messages.showsProgress, throttle.admits(status, at: elapsed) else { return }
        if terminal.isInteractive {
            terminal.redraw(bar.line(status, columns: terminal.columns))
            isDrawn = true
        } else {
            terminal.writeLine(bar.plainLine(status))
        }
    }
}

/// Formats the progress of a transfer in one line, never wider than a limit. Pure.
///
///     big.iso  [==========>         ]  52%  104.0 of 200.0 MB  512.3 MB/s  0:01
///
/// In a narrow terminal the details are dropped first, then the bar, and the name last.
struct Bar {
    private static let shortestBar = 10
    private static let gap = "  "

    /// The name of the file.
    let label: String

    /// Creates a bar. Control characters of the name, which can come from a server, are replaced.
    init(label: String) { self.label = Terminal.plain(label) }

    /// Returns the line for a number of columns. The last three stay empty: some terminals wrap after the last column,
    /// and Ctrl-C shows as `^C`.
    func line(_ status: TransferStatus, columns: Int) -> String {
        let room = max(0, columns - 3)
        let name = Columns.fit(label, to: max(8, room / 4))
        for details in Self.details(status) {
            let text = details.joined(separator: Self.gap)
            let used = Columns.count(name) + Columns.count(text) + 2 * Self.gap.count + 2
            guard let fraction = status.fraction else {
                let line = name + Self.gap + text
                if Columns.count(line) <= room { return line }
                continue
            }
            if room - used >= Self.shortestBar {
                return name + Self.gap + Self.bar(fraction, width: room - used) + Self.gap + text
            }
        }
        return Columns.fit(Self.details(status).last?.first ?? "", to: room)
    }

    /// Returns the line for output that is not a terminal, without bar and padding.
    func plainLine(_ status: TransferStatus) -> String {
        var parts = [status.fraction.map { Self.percent($0) }, Self.amount(status)].compactMap(\.self)
        if let note = status.note {
            parts.append(note)
        } else {
            if let rate = status.rate { parts.append(ByteText.rate(rate)) }
            if let remaining = status.remaining, remaining > .zero {
                parts.append("\(DurationText.clock(remaining)) left")
            }
        }
        return "\(label): \(parts.joined(separator: ", "))"
    }

    /// Returns the details, from the longest to the shortest. Each is padded, so that the length of the bar stays the
    /// same.
    private static func details(_ status: TransferStatus) -> [[String]] {
        let lead = status.fraction.map { Columns.right(percent($0), 4) } ?? amount(status)
        let middle = status.total.map { [Columns.right(amount(status), 2 * ByteText.size($0).count + 1)] } ?? []
        if let note = status.note {
            return [[lead] + middle + [Columns.left(note, 18)], [lead, Columns.left(note, 10)], [lead, note], [lead]]
        }
        let rate = Columns.right(status.rate.map { ByteText.rate($0) } ?? "", 10)
        let left = Columns.right(status.remaining.map { DurationText.clock($0) } ?? "", 6)
        return [[lead] + middle + [rate, left], [lead, rate, left], [lead, rate], [lead]]
    }

    private static func bar(_ fraction: Double, width: Int) -> String {
        let filled = Int((fraction * Double(width)).rounded(.down))
        if filled >= width { return "[" + String(repeating: "=", count: width) + "]" }
        return "[" + String(repeating: "=", count: filled) + ">" + String(repeating: " ", count: width - filled - 1)
            + "]"
    }

    /// Returns the percentage, rounded down so that 100% means all bytes.
    private static func percent(_ fraction: Double) -> String { "\(Int((fraction * 100).rounded(.down)))%" }

    private static func amount(_ status: TransferStatus) -> String {
        guard let total = status.total else { return ByteText.size(status.completed) }
        return "\(ByteText.size(status.completed, inUnitOf: total)) of \(ByteText.size(total))"
    }
}
